//! What an operator wrote as a recovery script: errors, or an image that the verifier accepts.

use weft_core::recovery::{Expected, verify};
use weft_rl::Reader;

/// One input.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let reader: &mut Reader<'_> = &mut |_, _| Err("there is none".into());
    let translation = weft_rl::translate("fuzz.rl", &text, None, reader);
    // A drawing of each finding must be possible.
    let _drawn = translation.render();
    if let Some(image) = &translation.image {
        let expected = Expected { nodes: None, keeps_rules: |_| true };
        assert!(verify(image, &expected).is_ok());
        // What is translated has a form, and the form is stable.
        let once = weft_rl::format(&text).expect("its words are known");
        assert_eq!(weft_rl::format(&once).expect("its words are known"), once);
    } else {
        assert!(!translation.diagnostics.is_empty());
    }
}
