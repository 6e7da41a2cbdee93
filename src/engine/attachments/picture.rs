//! Checks the bytes of an image. A provider refuses the whole request for one file that is not a complete
//! image, and then refuses every later request of the thread. So the declared type alone is not trusted.
//! Pixels are not decoded; the check only covers the structure of the format.

use imagesize::ImageType;

use crate::limits;
use crate::store::attachment::Flaw;

/// An image that models' providers accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub(super) media_type: &'static str,
    /// Pixels.
    width: u32,
    /// Pixels.
    height: u32,
}

/// Whether a declared type is an image type.
pub(super) fn has_image_type(mime: &str) -> bool {
    mime.trim_start().get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case("image/"))
}

/// The size of an image in pixels, from its first bytes.
pub(super) fn pixels(content: &[u8]) -> Option<(u32, u32)> {
    let size = imagesize::blob_size(content).ok()?;
    Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))
}

/// The type of an image that models may be shown, from its first bytes.
pub(super) fn kind(content: &[u8]) -> Option<&'static str> {
    match imagesize::image_type(content).ok()? {
        ImageType::Png => Some("image/png"),
        ImageType::Jpeg => Some("image/jpeg"),
        ImageType::Gif => Some("image/gif"),
        ImageType::Webp => Some("image/webp"),
        _ => None,
    }
}

/// Checks the whole content of a file.
///
/// # Errors
/// The reason for which models are not shown it.
pub(super) fn look(content: &[u8]) -> Result<Picture, Flaw> {
    let media_type = kind(content).ok_or(Flaw::NoImage)?;
    let whole = match media_type {
        "image/png" => is_whole_png(content),
        "image/jpeg" => is_whole_jpeg(content),
        "image/gif" => is_whole_gif(content),
        _ => is_whole_webp(content),
    };
    let (width, height) = whole.and_then(|()| pixels(content)).ok_or(Flaw::CutOff)?;
    if width == 0 || height == 0 {
        return Err(Flaw::NoImage);
    }
    if width.max(height) > limits::IMAGE_PIXELS {
        return Err(Flaw::TooManyPixels);
    }
    if content.len() > limits::IMAGE_BYTES {
        return Err(Flaw::TooManyBytes);
    }
    Ok(Picture { media_type, width, height })
}

fn number<const N: usize>(content: &[u8], at: usize) -> Option<[u8; N]> {
    content.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// All chunks up to the last one, with image data among them.
fn is_whole_png(content: &[u8]) -> Option<()> {
    let (mut at, mut has_data) = (8, false);
    loop {
        let length = u32::from_be_bytes(number(content, at)?) as usize;
        let kind: [u8; 4] = number(content, at + 4)?;
        at = at.checked_add(length)?.checked_add(12).filter(|end| *end <= content.len())?;
        match &kind {
            b"IDAT" => has_data = true,
            b"IEND" => return has_data.then_some(()),
            _ => {}
        }
    }
}

/// The segments up to the compressed data, and the end marker after it. Programs write more bytes after the
/// marker.
fn is_whole_jpeg(content: &[u8]) -> Option<()> {
    let mut at = 2;
    loop {
        let [0xff, marker] = number(content, at)? else { return None };
        at += match marker {
            // Padding.
            0xff => 1,
            0x01 | 0xd0..=0xd8 => 2,
            0xd9 => return None,
            0xda => break,
            _ => 2 + usize::from(u16::from_be_bytes(number(content, at + 2)?)),
        };
    }
    // In the compressed data this pair can only be the end marker.
    let data = content.get(at..)?;
    data.windows(2).rev().any(|pair| pair == [0xff, 0xd9]).then_some(())
}

/// The first frame, with all of its data.
fn is_whole_gif(content: &[u8]) -> Option<()> {
    let table = |packed: u8| if packed & 0x80 == 0 { 0 } else { 3 << ((packed & 7) + 1) };
    let mut at = 13 + table(*content.get(10)?);
    loop {
        let is_frame = match content.get(at)? {
            0x21 => {
                at += 2;
                false
            }
            0x2c => {
                // After the position: its colour table, and the code size.
                at += 11 + table(*content.get(at + 9)?);
                true
            }
            _ => return None,
        };
        let first = at;
        loop {
            match usize::from(*content.get(at)?) {
                0 => break,
                length => at += 1 + length,
            }
        }
        if is_frame {
            return (at > first).then_some(());
        }
        at += 1;
    }
}

/// As many bytes as the header declares.
fn is_whole_webp(content: &[u8]) -> Option<()> {
    let length = u32::from_le_bytes(number(content, 4)?) as usize;
    (length.checked_add(8)? <= content.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pixel each.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\
        \0\0\0\x0aIDAT\x78\x9c\x63\x60\0\0\0\x02\0\x01\x48\xaf\xa4\x71\0\0\0\0IEND\xae\x42\x60\x82";
    const GIF: &[u8] =
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff\x21\xf9\x04\x01\0\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b";
    const WEBP: &[u8] = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\
        \xff\xc0\0\x0b\x08\0\x02\0\x03\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0\x12\xff\0\x34\xff\xd9";

    fn large(mut png: Vec<u8>, width: u32) -> Vec<u8> {
        png.splice(16..20, width.to_be_bytes());
        png
    }

    #[test]
    fn an_image_is_what_its_bytes_say() {
        for (content, media_type, width, height) in [
            (PNG, "image/png", 1, 1),
            (GIF, "image/gif", 1, 1),
            (WEBP, "image/webp", 1, 1),
            (JPEG, "image/jpeg", 3, 2),
        ] {
            assert_eq!(look(content), Ok(Picture { media_type, width, height }));
            // Programs write more bytes after the end.
            assert_eq!(look(&[content, b"more"].concat()).map(|image| image.width), Ok(width));
        }
    }

    #[test]
    fn a_part_of_an_image_is_none() {
        for (whole, end) in [(PNG, 0), (WEBP, 0), (JPEG, 0), (GIF, 1)] {
            for length in 0..whole.len() - end {
                let part = &whole[..length];
                assert!(look(part).is_err(), "{length} bytes of {} pass", whole.len());
            }
        }
    }

    #[test]
    fn what_is_no_image_is_told_from_what_is_too_large() {
        let long = [PNG, &vec![0; limits::IMAGE_BYTES]].concat();
        for (content, flaw) in [
            (b"".to_vec(), Flaw::NoImage),
            (b"Just a text, with the name of an image.".to_vec(), Flaw::NoImage),
            (b"\xff\xd8\xff\xe0".to_vec(), Flaw::NoImage),
            (JPEG[..30].to_vec(), Flaw::CutOff),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(), Flaw::NoImage),
            (b"GIF89a\x03\x00\x02\x00\x00\x00\x00;".to_vec(), Flaw::CutOff),
            (large(PNG.to_vec(), 0), Flaw::NoImage),
            (large(PNG.to_vec(), limits::IMAGE_PIXELS + 1), Flaw::TooManyPixels),
            (large(PNG.to_vec(), u32::MAX), Flaw::TooManyPixels),
            (long, Flaw::TooManyBytes),
        ] {
            assert_eq!(look(&content), Err(flaw));
        }
        assert!(look(&large(PNG.to_vec(), limits::IMAGE_PIXELS)).is_ok());
    }

    #[test]
    fn no_bytes_of_an_image_can_break_the_look() {
        for whole in [PNG, GIF, WEBP, JPEG] {
            for at in 0..whole.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut odd = whole.to_vec();
                    odd[at] = byte;
                    let _either_way = look(&odd);
                }
            }
        }
    }

    #[test]
    fn an_image_is_what_is_called_one() {
        assert!(has_image_type("IMAGE/bmp") && !has_image_type("text/image"));
    }
}
