//! What a work completion's status means to the port.
//!
//! The port knows three failures. Which one a status is, is decided by what the poster may still
//! believe: [`Failure::AccessDenied`] promises that no byte was changed, so only those statuses
//! are mapped to it with which the peer's device refuses a request before it carries it out.
//! Everything else is [`Failure::Gone`]: whether the work took effect is not known.
//! [`Failure::DeadlinePassed`] has no status; the driver itself says it (F-12).
//!
//! | # | status | port | seen when |
//! |---|---|---|---|
//! | 0 | success | the work's value | |
//! | 1 | local length error | `Gone` | a message longer than the device takes; prevented by cutting |
//! | 2 | local queue-pair operation error | `Gone` | own network interface down |
//! | 3 | local EE context error | `Gone` | not on RC |
//! | 4 | local protection error | `Gone` | a local end outside its registration; prevented by F-11 |
//! | 5 | flushed | `Gone` | everything behind the first failure of a pair |
//! | 6 | memory window bind error | `Gone` | no windows are bound |
//! | 7 | bad response | `Gone` | a peer's device out of order |
//! | 8 | local access error | `Gone` | not on one-sided work |
//! | 9 | remote invalid request | `AccessDenied` | the peer's pair takes no work of this kind |
//! | 10 | remote access error | `AccessDenied` | wrong or revoked key, range or right |
//! | 11 | remote operation error | `Gone` | the peer's device failed |
//! | 12 | transport retries exceeded | `Gone` | peer dead, its pair destroyed or in error, path cut |
//! | 13 | receiver-not-ready retries exceeded | `Gone` | not on one-sided work |
//! | 14–18 | RD statuses | `Gone` | not on RC |
//! | 19 | fatal | `Gone` | the device failed |
//! | 20 | response timeout | `Gone` | |
//! | 21 | general | `Gone` | |
//! | 22, 23 | tag matching | `Gone` | not used |
//! | others | | `Gone` | |

use weft_core::fabric::Failure;

/// A status by number, with its name and its meaning to the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The number in `enum ibv_wc_status`.
    pub number: u32,
    /// Its name in that enumeration, in lower case and without the prefix.
    pub name: &'static str,
    /// What the port says; `None` for success.
    pub failure: Option<Failure>,
}

const fn gone(number: u32, name: &'static str) -> Status {
    Status { number, name, failure: Some(Failure::Gone) }
}

const fn denied(number: u32, name: &'static str) -> Status {
    Status { number, name, failure: Some(Failure::AccessDenied) }
}

/// All statuses that verbs define, by number.
pub const STATUSES: [Status; 24] = [
    Status { number: 0, name: "success", failure: None },
    gone(1, "loc_len_err"),
    gone(2, "loc_qp_op_err"),
    gone(3, "loc_eec_op_err"),
    gone(4, "loc_prot_err"),
    gone(5, "wr_flush_err"),
    gone(6, "mw_bind_err"),
    gone(7, "bad_resp_err"),
    gone(8, "loc_access_err"),
    denied(9, "rem_inv_req_err"),
    denied(10, "rem_access_err"),
    gone(11, "rem_op_err"),
    gone(12, "retry_exc_err"),
    gone(13, "rnr_retry_exc_err"),
    gone(14, "loc_rdd_viol_err"),
    gone(15, "rem_inv_rd_req_err"),
    gone(16, "rem_abort_err"),
    gone(17, "inv_eecn_err"),
    gone(18, "inv_eec_state_err"),
    gone(19, "fatal_err"),
    gone(20, "resp_timeout_err"),
    gone(21, "general_err"),
    gone(22, "tm_err"),
    gone(23, "tm_rndv_incomplete"),
];

/// What the port says of `status`; `None` for success.
#[must_use]
pub fn failure_of(status: u32) -> Option<Failure> {
    let known = STATUSES.get(status as usize);
    known.map_or(Some(Failure::Gone), |status| status.failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_only_zero_is_success() {
        for (number, status) in (0..).zip(STATUSES) {
            assert_eq!(status.number, number);
            assert_eq!(status.failure.is_none(), number == 0, "{status:?}");
            assert_eq!(failure_of(number), status.failure);
        }
    }

    #[test]
    fn only_a_refusal_by_the_peers_device_promises_that_no_byte_changed() {
        let refusals =
            STATUSES.iter().filter(|status| status.failure == Some(Failure::AccessDenied));
        let names: Vec<_> = refusals.map(|status| status.name).collect();
        assert_eq!(names, ["rem_inv_req_err", "rem_access_err"]);
    }

    #[test]
    fn a_status_of_tomorrow_is_no_success() {
        assert_eq!(failure_of(24), Some(Failure::Gone));
        assert_eq!(failure_of(u32::MAX), Some(Failure::Gone));
    }

    #[cfg(feature = "verbs")]
    #[test]
    fn the_numbers_are_those_of_the_header() {
        use crate::ffi::ibv_wc_status as header;
        let same = |number: usize, name| assert_eq!(STATUSES[number].name, name);
        same(header::IBV_WC_WR_FLUSH_ERR as usize, "wr_flush_err");
        same(header::IBV_WC_REM_INV_REQ_ERR as usize, "rem_inv_req_err");
        same(header::IBV_WC_REM_ACCESS_ERR as usize, "rem_access_err");
        same(header::IBV_WC_RETRY_EXC_ERR as usize, "retry_exc_err");
        same(header::IBV_WC_TM_RNDV_INCOMPLETE as usize, "tm_rndv_incomplete");
    }
}
