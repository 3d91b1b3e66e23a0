//! The head of a scraper's request, and what is replied to it.

use httparse::{EMPTY_HEADER, Error, Request, Status};

use super::exposition::CONTENT_TYPE;

/// The longest head of a request; a scraper's has a few hundred bytes.
pub(super) const HEAD_LEN_MAX: usize = 8 * 1024;
/// The most headers of a request.
const HEADERS_MAX: usize = 64;

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestTarget {
    /// The metrics.
    Text,
    /// How long they are and what they are, without them.
    Head,
    /// Something that is not served, for this reason.
    Refused(RequestRefusal),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestRefusal {
    Malformed,
    NotFound,
    Method,
    TooLong,
}

impl RequestRefusal {
    /// The status, and the cause with its cure.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Malformed => ("400 Bad Request", "no request of HTTP/1; send GET /metrics\n"),
            Self::NotFound => ("404 Not Found", "the only path here is /metrics\n"),
            Self::Method => ("405 Method Not Allowed", "metrics are only read; send GET\n"),
            Self::TooLong => {
                ("431 Request Header Fields Too Large", "send fewer or shorter headers\n")
            }
        }
    }
}

/// What the head in `bytes` wants; none while it is not complete.
pub(super) fn wanted(bytes: &[u8]) -> Option<RequestTarget> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    let refused = |why| Some(RequestTarget::Refused(why));
    match request.parse(bytes) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) if bytes.len() < HEAD_LEN_MAX => return None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => {
            return refused(RequestRefusal::TooLong);
        }
        Err(_) => return refused(RequestRefusal::Malformed),
    }
    let path = request.path.unwrap_or_default().split('?').next();
    match (path, request.method) {
        (Some("/metrics"), Some("GET")) => Some(RequestTarget::Text),
        (Some("/metrics"), Some("HEAD")) => Some(RequestTarget::Head),
        (Some("/metrics"), _) => refused(RequestRefusal::Method),
        _ => refused(RequestRefusal::NotFound),
    }
}

/// The reply to it, where these are the metrics.
pub(super) fn reply(wanted: RequestTarget, metrics: &str) -> String {
    let (status, kind, text) = match wanted {
        RequestTarget::Text | RequestTarget::Head => ("200 OK", CONTENT_TYPE, metrics),
        RequestTarget::Refused(why) => {
            let (status, text) = why.words();
            (status, "text/plain; charset=utf-8", text)
        }
    };
    let allow = match wanted {
        RequestTarget::Refused(RequestRefusal::Method) => "Allow: GET, HEAD\r\n",
        _ => "",
    };
    let body = if wanted == RequestTarget::Head { "" } else { text };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\n\r\n{body}",
        text.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_taken_as_it_arrives_and_all_else_is_refused_by_name() {
        let get = b"GET /metrics?a=b HTTP/1.1\r\nHost: weft\r\n\r\n";
        assert!((0..get.len()).all(|len| wanted(&get[..len]).is_none()));
        assert_eq!(wanted(get), Some(RequestTarget::Text));
        let of = |text: &str| wanted(text.as_bytes()).expect("complete");
        assert_eq!(of("HEAD /metrics HTTP/1.0\r\n\r\n"), RequestTarget::Head);
        let refused = |text: &str| match of(text) {
            RequestTarget::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), RequestRefusal::NotFound);
        assert_eq!(refused("POST /metrics HTTP/1.1\r\n\r\n"), RequestRefusal::Method);
        assert_eq!(refused("\0\0\0\0"), RequestRefusal::Malformed);
        assert_eq!(refused("GET /metrics SPDY/3\r\n\r\n"), RequestRefusal::Malformed);
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "a".repeat(HEAD_LEN_MAX));
        assert_eq!(refused(&long), RequestRefusal::TooLong);
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(refused(&many), RequestRefusal::TooLong);
    }

    #[test]
    fn a_reply_has_the_length_and_the_type_of_its_body() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; \
                    charset=utf-8\r\nContent-Length: 6\r\nConnection: close\r\n\r\n";
        assert_eq!(reply(RequestTarget::Text, "# EOF\n"), format!("{head}# EOF\n"));
        assert_eq!(reply(RequestTarget::Head, "# EOF\n"), head);
        let refused = reply(RequestTarget::Refused(RequestRefusal::Method), "# EOF\n");
        assert!(refused.starts_with("HTTP/1.1 405") && refused.contains("Allow: GET, HEAD"));
        assert!(refused.ends_with("send GET\n"), "{refused}");
    }
}
