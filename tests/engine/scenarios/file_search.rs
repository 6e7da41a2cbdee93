//! Searches in files, compared with reading them.

use bobbin::limits;
use bobbin::request::StreamRoute;

use super::files::{grep, put, remove};
use super::story;
use crate::files::Sent;
use crate::host::rng::Rng;

#[test]
fn searching_finds_what_reading_would_find() {
    story("grep")
        .drive(|sim| async move {
            let mut rng = Rng::new(7);
            let letters =
                ['a', 'A', 'b', 'ß', 'Ü', 'ü', '"', '*', ' ', '\0', '\u{1}', '\u{fffe}', '🧵', '\n', '\r'];
            let text = |rng: &mut Rng, length: usize| -> String {
                (0..rng.below(length)).map(|_| letters[rng.below(letters.len())]).collect()
            };
            let mut files: Vec<(String, String)> = Vec::new();
            for round in 0..4 {
                for n in 0..12 {
                    let (path, content) = (format!("/t{n}"), text(&mut rng, 60));
                    files.retain(|(known, _)| *known != path);
                    if n % 4 == round {
                        remove(&sim, &path).await;
                        continue;
                    }
                    put(&sim, &path, "text/plain", content.as_bytes()).await;
                    files.push((path, content));
                }
                files.sort();
                for _ in 0..60 {
                    let pattern = text(&mut rng, 6);
                    if pattern.is_empty() {
                        continue;
                    }
                    let small = |text: &str| text.replace(['A'], "a").replace('Ü', "ü");
                    let has = |content: &str| {
                        let mut lines =
                            content.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
                        lines.any(|line| small(line).contains(&small(&pattern)))
                    };
                    let expected: Vec<&String> =
                        files.iter().filter(|(_, content)| has(content)).map(|(path, _)| path).collect();
                    assert_eq!(
                        grep(&sim, &pattern).await.iter().collect::<Vec<_>>(),
                        expected,
                        "{pattern:?}"
                    );
                }
            }
            // No text, and too large a text.
            put(&sim, "/image", "image/png", b"needle").await;
            put(&sim, "/huge.txt", "text/plain", &b"needle\n".repeat(150_000)).await;
            assert!(grep(&sim, "needle").await.is_empty());
            // Bytes that are no UTF-8 take more room once they are read as text: found without the index.
            let odd = [vec![0xff; 400_000], b"Needle".to_vec()].concat();
            put(&sim, "/odd.txt", "text/plain", &odd).await;
            assert_eq!(grep(&sim, "NEEDLE").await, ["/odd.txt"]);
            let got = sim.serve(Sent::new(StreamRoute::ListFiles).query("grep", "")).await;
            assert_eq!(got.status, 400);
        })
        .calm();
}

#[test]
fn an_answer_of_large_results_ends_early() {
    story("large searches")
        .drive(|sim| async move {
            // Escaped, each of these characters takes six bytes.
            let lines = format!("needle{}\n", "\u{1}".repeat(500)).repeat(60);
            for n in 0..60 {
                put(&sim, &format!("/{n:02}.txt"), "text/plain", lines.as_bytes()).await;
            }
            let metadata = "{\"note\":\"".to_owned() + &"x".repeat(limits::METADATA_BYTES - 100) + "\"}";
            sim.world.database.alter(&format!("UPDATE files SET metadata = '{metadata}' WHERE kind = 1"));
            for (name, rows) in [("grep", "results"), ("find", "files")] {
                let pattern = if name == "grep" { "needle" } else { "*.txt" };
                let got = sim.serve(Sent::new(StreamRoute::ListFiles).query(name, pattern)).await;
                let found = got.json();
                let bytes = found.to_string().len();
                assert!(bytes <= limits::PAGE_BYTES + 1_000, "{name}: {bytes} bytes");
                assert_eq!(found["truncated"], true, "{name}");
                assert!(found[rows].as_array().unwrap().len() > 5, "{name}");
            }
        })
        .once();
}
