//! Undoes `\ooo`, as tmux and lists of mounts write bytes that would end a word or a line.

/// The bytes of a text in which `\` and three octal digits stand for one; any other `\` is itself.
pub fn unescape(escaped: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((first, others)) = rest.split_first() {
        let digits = others.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match digits {
            Some(digits) if *first == b'\\' => {
                bytes.push(digits.iter().fold(0_u8, |value, digit| (value << 3) | (digit - b'0')));
                rest = &others[3..];
            }
            _ => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_octal_number_stays() {
        for (text, read) in [("/a\\040b\\011", "/a b\t"), ("/plain", "/plain"), ("/a\\9", "/a\\9"), ("/a\\", "/a\\")] {
            assert_eq!(unescape(text.as_bytes()), read.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let escape = |byte: &u8| if *byte < b' ' || *byte == b'\\' { format!("\\{byte:03o}").into_bytes() } else { vec![*byte] };
            let escaped: Vec<u8> = bytes.iter().flat_map(escape).collect();
            prop_assert_eq!(unescape(&escaped), bytes);
        }
    }
}
