//! Memories: documents come in, are cut and get vectors, and are found, whatever fails here and there.

use bobbin::request::{MemoryRoute, ThreadRoute};
use serde_json::{Value, json};

use super::story;
use crate::host::outside::ModelRequest;
use crate::host::{Answer, EMBED_URL, SECOND_US, Say};
use crate::sim::{Seen, Sim};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![
        documents(),
        unreachable(),
        other_model(),
        refused(),
        entered_by_an_older_build(),
        injected(),
        noted(),
        silent(),
    ]
}

/// With a memory `book` of the thread's own, whose vectors come from a server.
pub fn with_book(catalog: &mut Value) {
    catalog["models"]["embed"] = json!({ "provider": "openai", "kind": "embedding", "model": "e1",
        "baseUrl": EMBED_URL, "batch": 2 });
    catalog["memories"]["book"] = json!({ "description": "What is known.", "embedding": "embed",
        "chunk": { "chars": 100, "overlap": 20 } });
}

pub fn route(of: MemoryRoute) -> ThreadRoute {
    ThreadRoute::Memory { memory: "book".to_owned(), of }
}

pub async fn add(sim: &Sim, body: Value) -> Seen {
    let key = sim.key();
    sim.insist(route(MemoryRoute::AddDocument), &[], Some(&key), body.to_string()).await
}

/// The one that was accepted, once it is in that state.
pub async fn until_state(sim: &Sim, accepted: &Seen, wanted: &str) -> Value {
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let id = accepted.body["document"]["id"].as_str().expect("an id").to_owned();
    for _ in 0..600 {
        let found = sim.get(route(MemoryRoute::GetDocument(id.clone())), &[]).await;
        if found["document"]["state"] == wanted {
            return found["document"].clone();
        }
        sim.world.pause(SECOND_US / 4).await;
    }
    let found = sim.get(route(MemoryRoute::GetDocument(id)), &[]).await;
    panic!("never {wanted}: {found}");
}

/// What a search finds: keys of documents are not told, so texts; and whether it was degraded.
pub async fn search(sim: &Sim, body: Value) -> (Vec<String>, bool) {
    let seen = sim.insist(route(MemoryRoute::Search), &[], None, body.to_string()).await;
    assert_eq!(seen.status, 200, "{seen:?}");
    let results = seen.body["results"].as_array().cloned().unwrap_or_default();
    let texts = results.iter().map(|hit| hit["text"].as_str().unwrap_or_default().to_owned());
    (texts.collect(), seen.body["degraded"] == true)
}

/// Five chunks or so about one thing.
pub fn text_about(thing: &str) -> String {
    (0..6)
        .map(|n| format!("Chapter {n} tells of the {thing} and of nothing else that matters much.\n\n"))
        .collect()
}

/// Nothing is owed, and the words of each chunk are there once.
fn whole_words(sim: &Sim) {
    let ask = |statement: &str| sim.member.database.ask::<i64>(statement);
    assert_eq!(ask("SELECT jobs FROM meta"), [0], "nothing is owed");
    assert_eq!(ask("SELECT count(*) FROM mem_fts"), ask("SELECT count(*) FROM mem_chunks"));
    assert_eq!(ask("SELECT count(*) FROM mem_stores WHERE substr(embedding, -1) != char(31)"), [0]);
}

/// Each chunk is there once, with one vector and its words, and nothing is left of what is gone.
pub fn whole(sim: &Sim) {
    whole_words(sim);
    let ask = |statement: &str| sim.member.database.ask::<i64>(statement);
    assert_eq!(ask("SELECT count(*) FROM mem_texts"), [0]);
    assert_eq!(ask("SELECT count(*) FROM mem_docs WHERE state != 'ready' OR gen != next"), [0]);
    let chunks = ask("SELECT count(*) FROM mem_chunks");
    assert_eq!(ask("SELECT sum(chunks) FROM mem_docs"), chunks);
    assert_eq!(ask("SELECT chunks FROM mem_stores"), chunks);
    assert_eq!(ask("SELECT count(DISTINCT slot) FROM mem_chunks"), chunks, "each has a vector of its own");
    assert_eq!(ask("SELECT count(*) FROM (SELECT DISTINCT doc, gen, n FROM mem_chunks)"), chunks);
    assert_eq!(
        ask("SELECT count(*) FROM mem_chunks c JOIN mem_docs d ON d.id = c.doc AND d.gen = c.gen"),
        chunks
    );
    let free = ask("SELECT 256 * count(*) - coalesce(sum(free), 0) FROM mem_pages");
    assert_eq!(free, chunks, "no place is taken by what is gone");
}

fn documents() -> Scenario {
    story("documents come, are replaced and go")
        .define(with_book)
        .drive(|sim| async move {
            let first =
                add(&sim, json!({ "key": "a", "title": "Lighthouses", "text": text_about("lighthouse") }))
                    .await;
            let second = add(&sim, json!({ "text": text_about("windmill"), "tags": ["mills"] })).await;
            until_state(&sim, &first, "ready").await;
            let ready = until_state(&sim, &second, "ready").await;
            assert_eq!(ready["chunks"], ready["done"]);
            let (found, degraded) = search(&sim, json!({ "query": "windmill", "topK": 2 })).await;
            assert!(!degraded && found.iter().all(|text| text.contains("windmill")), "{found:?}");
            let (found, _) = search(&sim, json!({ "query": "chapter", "tags": ["mills"] })).await;
            assert!(!found.is_empty() && found.iter().all(|text| text.contains("windmill")), "{found:?}");
            // Another form of the first one: the old one is found until it is complete.
            let again = add(&sim, json!({ "key": "a", "text": text_about("harbour") })).await;
            assert_eq!(again.body["document"]["id"], first.body["document"]["id"]);
            let (found, _) = search(&sim, json!({ "query": "lighthouse harbour", "topK": 20 })).await;
            let has = |word: &str| found.iter().any(|text| text.contains(word));
            assert!(has("lighthouse") != has("harbour"), "one form at a time: {found:?}");
            until_state(&sim, &again, "ready").await;
            let (found, _) = search(&sim, json!({ "query": "lighthouse harbour", "topK": 20 })).await;
            assert!(found.iter().any(|text| text.contains("harbour")), "{found:?}");
            assert!(found.iter().all(|text| !text.contains("lighthouse")), "{found:?}");
            let id = second.body["document"]["id"].as_str().unwrap().to_owned();
            let gone =
                sim.insist(route(MemoryRoute::DeleteDocument(id.clone())), &[], None, String::new()).await;
            // What was asked again after its answer was lost finds nothing.
            assert!(gone.status == 204 || gone.status == 404, "{gone:?}");
            let (found, _) = search(&sim, json!({ "query": "windmill", "topK": 20 })).await;
            assert!(found.iter().all(|text| !text.contains("windmill")), "{found:?}");
        })
        .check(|sim, history| {
            whole(sim);
            let told = sim.member.database.ask::<i64>("SELECT count(*) FROM mem_docs");
            assert_eq!(told, [1]);
            if history.faults == 0 {
                let mut texts = sim.world.outside.embeddings.texts();
                texts.retain(|text| text.contains("Chapter"));
                let all = texts.len();
                texts.sort();
                texts.dedup();
                assert_eq!(texts.len(), all, "without failures each chunk is sent once");
            }
        })
}

#[test]
fn documents_are_found_replaced_and_gone_whatever_fails() {
    documents().sweep();
}

fn unreachable() -> Scenario {
    story("documents while no vectors can be had")
        .define(with_book)
        .setup(|sim| {
            let world = sim.world.clone();
            sim.world.outside.embeddings.script(move |_| {
                let down = world.now_us() < crate::host::world::START_US + 40 * SECOND_US;
                down.then(|| Answer::status(503, "busy"))
            });
        })
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            let partial = until_state(&sim, &accepted, "partial").await;
            let error = partial["error"].as_str().unwrap_or_default();
            assert!(error.starts_with("embedding_failed: "), "{partial}");
            let (found, degraded) = search(&sim, json!({ "query": "lighthouse" })).await;
            assert!(degraded && found[0].contains("lighthouse"), "its words are found: {found:?}");
            until_state(&sim, &accepted, "ready").await;
            let (found, degraded) = search(&sim, json!({ "query": "lighthouse" })).await;
            assert!(!degraded && found[0].contains("lighthouse"), "{found:?}");
        })
        .check(|sim, _| whole(sim))
}

#[test]
fn without_vectors_words_are_found_and_it_heals_by_itself() {
    unreachable().sweep();
}

/// Refuses requests that have a text of which the word is a part.
fn refuse_texts_with(sim: &Sim, word: &'static str, status: u16) {
    let world = sim.world.clone();
    sim.world.outside.embeddings.script(move |_| {
        let requests = world.outside.embeddings.requests.borrow();
        let texts = requests.last().map(|body| body["input"].to_string()).unwrap_or_default();
        let error = json!({ "error": { "message": "input is too large to process" } }).to_string();
        texts.contains(word).then(|| Answer::status(status, &error))
    });
}

fn refused_with(status: u16) -> Scenario {
    story("a text that the model refuses")
        .define(|catalog| {
            with_book(catalog);
            catalog["models"]["embed"]["batch"] = json!(16);
        })
        .setup(move |sim| refuse_texts_with(sim, "anvil", status))
        .drive(|sim| async move {
            let text =
                format!("{}The anvil is here.\n\n{}", text_about("lighthouse"), text_about("windmill"));
            let first = add(&sim, json!({ "text": text })).await;
            let second = add(&sim, json!({ "text": text_about("harbour") })).await;
            until_state(&sim, &second, "ready").await;
            let partial = until_state(&sim, &first, "partial").await;
            let lack = partial["chunks"].as_i64().unwrap() - partial["done"].as_i64().unwrap();
            assert_eq!(lack, 1, "{partial}");
            let error = partial["error"].as_str().unwrap_or_default();
            assert!(error.starts_with("embedding_refused: "), "{partial}");
            for thing in ["lighthouse", "windmill", "harbour"] {
                let body = json!({ "query": thing, "mode": "vector", "topK": 1 });
                assert!(search(&sim, body).await.0[0].contains(thing));
            }
            let (found, _) = search(&sim, json!({ "query": "anvil", "topK": 1 })).await;
            assert!(found[0].contains("anvil"), "its words are found: {found:?}");
        })
        .check(|sim, history| {
            let ask = |statement: &str| sim.member.database.ask::<i64>(statement);
            assert_eq!(ask("SELECT jobs FROM meta"), [0], "nothing is owed");
            assert_eq!(ask("SELECT count(*) FROM mem_chunks WHERE slot IS NULL"), [0]);
            assert_eq!(ask("SELECT count(*) FROM mem_chunks WHERE slot < 0"), [1]);
            if history.faults == 0 {
                let requests = sim.world.outside.embeddings.requests.borrow();
                // Besides the question.
                let inputs = requests.iter().map(|body| body["input"].to_string());
                let refused =
                    inputs.filter(|texts| texts.contains("anvil") && texts != r#"["anvil"]"#).count();
                // The sizes 16, 8, 4, 2 and 1, and the first and the last of them once more where the first refusal may be a passing failure.
                assert!(refused <= 7, "16 texts are halved until one is alone: {refused} requests");
            }
        })
}

fn refused() -> Scenario {
    refused_with(400)
}

#[test]
fn a_text_that_the_model_refuses_is_set_aside_whatever_fails() {
    refused().sampled(200).sweep();
    refused_with(500).sampled(60).sweep();
}

#[test]
fn a_model_that_takes_no_text_sets_none_aside() {
    let scenario = story("a model of another name")
        .define(with_book)
        .setup(|sim| refuse_texts_with(sim, "", 400))
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            let partial = until_state(&sim, &accepted, "partial").await;
            assert!(
                partial["error"].as_str().unwrap_or_default().starts_with("embedding_failed: "),
                "{partial}"
            );
            assert_eq!(sim.world.outside.embeddings.requests.borrow().len(), 2, "the texts, and a short one");
            sim.world.outside.embeddings.script(|_| None);
            search(&sim, json!({ "query": "lighthouse" })).await;
            until_state(&sim, &accepted, "ready").await;
        })
        .check(|sim, _| whole(sim));
    scenario.calm();
}

/// A memory without vectors, as an older build has entered its words: each text as it is.
fn entered_by_an_older_build() -> Scenario {
    story("words that an older build has entered")
        .define(|catalog| {
            catalog["memories"]["book"] =
                json!({ "description": "x", "chunk": { "chars": 100, "overlap": 0 } })
        })
        .drive(|sim| async move {
            let text = format!("{}The end of it.", "退款将在三十天内处理。".repeat(3_000));
            let accepted = add(&sim, json!({ "text": text })).await;
            until_state(&sim, &accepted, "ready").await;
            sim.world.database.alter(
                "DELETE FROM mem_fts; INSERT INTO mem_fts (rowid, text) SELECT id, text FROM mem_chunks;
                UPDATE mem_stores SET embedding = ''",
            );
            let (found, _) = search(&sim, json!({ "query": "退款要几天" })).await;
            assert!(!found.is_empty(), "the first ones are entered before they are looked for");
            for _ in 0..600 {
                if sim.get(route(MemoryRoute::Get), &[]).await["state"] == "ready" {
                    return;
                }
                sim.world.pause(SECOND_US / 4).await;
            }
            panic!("its words are never entered");
        })
        .check(|sim, _| {
            whole_words(sim);
            let ask = |statement: &str| sim.member.database.ask::<i64>(statement);
            let found = ask("SELECT count(*) FROM mem_fts WHERE mem_fts MATCH '\"退款\"'");
            assert_eq!(found, ask("SELECT count(*) FROM mem_chunks WHERE text LIKE '%退款%'"));
            assert!(found[0] > 300, "more than one step: {found:?}");
        })
}

#[test]
fn words_that_an_older_build_has_entered_are_entered_again_whatever_fails() {
    entered_by_an_older_build().sampled(60).sweep();
}

fn other_model() -> Scenario {
    story("a model that gives other vectors")
        .define(with_book)
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "key": "a", "text": text_about("lighthouse") })).await;
            until_state(&sim, &accepted, "ready").await;
            sim.world.outside.embeddings.dims.set(40);
            let (found, _) = search(&sim, json!({ "query": "lighthouse" })).await;
            assert!(found[0].contains("lighthouse"), "{found:?}");
            until_state(&sim, &accepted, "ready").await;
            let (found, degraded) = search(&sim, json!({ "query": "lighthouse", "mode": "vector" })).await;
            assert!(!degraded && found[0].contains("lighthouse"), "{found:?}");
        })
        .check(|sim, _| {
            whole(sim);
            assert_eq!(sim.member.database.ask::<i64>("SELECT dims FROM mem_stores"), [40]);
        })
}

#[test]
fn other_vectors_are_never_compared_with_those_before() {
    other_model().sweep();
}

#[test]
fn who_has_no_memory_pays_nothing() {
    let scenario = story("plain").define(with_book).drive(|sim| async move {
        sim.ask("hello").await;
        let seen = search(&sim, json!({ "query": "hello" })).await;
        assert_eq!(seen, (Vec::new(), false));
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'mem_%'";
        assert_eq!(sim.member.database.ask::<i64>(tables), [0]);
        let missing = ThreadRoute::Memory { memory: "bok".to_owned(), of: MemoryRoute::Get };
        let seen = sim.insist(missing, &[], None, String::new()).await;
        assert_eq!(seen.body["error"]["code"], "memory_not_found");
    });
    scenario.once();
}

/// What a request has before the messages of the turn.
fn context_of(request: &ModelRequest) -> Option<&str> {
    request.texts("user").into_iter().find(|text| text.starts_with("Relevant context from memory."))
}

fn injecting(catalog: &mut Value) {
    with_book(catalog);
    catalog["prompts"]["p"]["memory"] = json!([{ "name": "book", "inject": true }]);
}

fn injected() -> Scenario {
    story("what fits a turn is put before it, and cited")
        .define(injecting)
        .says(|request: &ModelRequest| match (context_of(request), request.results().len()) {
            (Some(_), 0) => Say::call("work", &json!({ "n": 1 })),
            (Some(_), _) => Say::text("It is tall [m1], they say [m99]."),
            (None, _) => Say::text("Nobody knows."),
        })
        .drive(|sim| async move {
            let accepted =
                add(&sim, json!({ "key": "a", "title": "Lighthouses", "text": text_about("lighthouse") }))
                    .await;
            until_state(&sim, &accepted, "ready").await;
            sim.ask("How tall is the lighthouse?").await;
            let id = accepted.body["document"]["id"].as_str().unwrap().to_owned();
            sim.insist(route(MemoryRoute::DeleteDocument(id)), &[], None, String::new()).await;
            sim.ask("And now, the lighthouse?").await;
        })
        .check(|sim, history| {
            let requests = sim.world.outside.requests.borrow();
            let asked = |request: &&ModelRequest| request.last_user() == "How tall is the lighthouse?";
            let (first, later): (Vec<&ModelRequest>, Vec<&ModelRequest>) = requests.iter().partition(asked);
            let context = context_of(first[0]).expect("a context");
            assert!(context.contains("\n\n[m1] Lighthouses, ") && context.contains("Chapter"), "{context}");
            assert!(first.iter().all(|request| context_of(request) == Some(context)), "each says the same");
            assert!(
                !later.is_empty() && later.iter().all(|request| context_of(request).is_none()),
                "it is gone"
            );
            for request in requests.iter().filter(|request| context_of(request).is_some()) {
                let users = request.texts("user");
                let at = users.iter().position(|text| text.starts_with("Relevant context"));
                assert_eq!(at.map(|at| users[at + 1]), Some("How tall is the lighthouse?"));
                assert_eq!(request.texts("system").len(), 1, "it is never in the system prompt");
            }
            let cited = history
                .messages
                .iter()
                .find(|message| message["content"] == "It is tall [m1], they say [m99].");
            let citations = cited.expect("the reply")["metadata"]["citations"].clone();
            assert_eq!(citations.as_array().map(Vec::len), Some(1), "{citations}");
            let (start, end) =
                (citations[0]["start"].as_u64().unwrap(), citations[0]["end"].as_u64().unwrap());
            let text: Vec<char> = text_about("lighthouse").chars().collect();
            let cited: String = text[start as usize..end as usize].iter().collect();
            assert!(context.contains(cited.lines().next().unwrap()), "{citations}: {cited}");
            assert_eq!(
                (&citations[0]["label"], &citations[0]["title"]),
                (&json!("m1"), &json!("Lighthouses"))
            );
        })
}

#[test]
fn what_fits_a_turn_is_put_before_it_once_and_its_citations_are_places() {
    injected().sweep();
}

fn noted() -> Scenario {
    story("notes of a model")
        .define(|catalog| {
            with_book(catalog);
            catalog["prompts"]["p"]["memory"] =
                json!([{ "name": "book", "tools": ["search", "save", "update", "delete"] }]);
            catalog["prompts"]["p"]["tools"] = json!(["work", "scratchpad_write", "scratchpad_read"]);
        })
        .says(|request: &ModelRequest| {
            let results = request.results();
            match (request.last_user(), results.len()) {
                ("save", 0) => Say::call(
                    "memory_save",
                    &json!({ "content": "The lighthouse is forty metres tall.", "tags": ["tall"] }),
                )
                .and_call("scratchpad_write", r#"{"items":["ask about the lighthouse"]}"#),
                ("change", 0) => Say::call("memory_search", &json!({ "query": "lighthouse" })),
                ("change", 1) => {
                    let id = results[0]
                        .split("(id ")
                        .nth(1)
                        .and_then(|rest| rest.split(',').next())
                        .unwrap_or("none");
                    Say::call(
                        "memory_update",
                        &json!({ "id": id, "content": "The lighthouse is fifty metres tall." }),
                    )
                    .and_call("scratchpad_read", "{}")
                }
                _ => Say::text(format!("done: {}", results.join(" | "))),
            }
        })
        .drive(|sim| async move {
            sim.ask("save").await;
            let noted = "SELECT count(*) FROM mem_docs WHERE state = 'ready'";
            sim.until("the note is indexed", |sim| sim.member.database.ask::<i64>(noted) == [1]).await;
            sim.ask("change").await;
            let owed = "SELECT jobs FROM meta";
            sim.until("the note is indexed again", |sim| sim.member.database.ask::<i64>(owed) == [0]).await;
            let (found, _) = search(&sim, json!({ "query": "lighthouse" })).await;
            assert_eq!(found, ["The lighthouse is fifty metres tall."]);
        })
        .check(|sim, history| {
            whole(sim);
            let keys =
                sim.member.database.ask::<i64>("SELECT count(*) FROM mem_docs WHERE key LIKE 'note-%'");
            assert_eq!(keys, [1], "a note is saved once, whatever is made again");
            let said: String =
                history.messages.iter().filter_map(|message| message["content"].as_str()).collect();
            if history.faults == 0 {
                assert!(
                    said.contains("[m1] a note, ") && said.contains("ask about the lighthouse"),
                    "{said}"
                );
            }
        })
}

#[test]
fn a_note_is_saved_once_found_and_changed() {
    noted().sweep();
}

fn silent() -> Scenario {
    story("a server of vectors that says nothing")
        .define(injecting)
        .setup(|sim| sim.world.outside.embeddings.script(|n| (n >= 3).then(Answer::silence)))
        .says(|request: &ModelRequest| {
            Say::text(if context_of(request).is_some() { "known" } else { "unknown" })
        })
        .drive(|sim| async move {
            let accepted = add(&sim, json!({ "text": text_about("lighthouse") })).await;
            assert_eq!(accepted.status, 202);
            sim.world.pause(20 * SECOND_US).await;
            let outcome = sim.ask("How tall is the lighthouse?").await;
            assert_eq!(outcome["outcome"], "completed", "{outcome}");
        })
        .terms(|terms| terms.alarm_may_stay = true)
        .check(|_, history| {
            if history.faults == 0 {
                let told = format!("{:?}", history.outcomes);
                assert!(told.contains("memory.unavailable"), "{told}");
            }
        })
}

#[test]
fn a_memory_that_does_not_answer_holds_up_no_run() {
    silent().sweep();
}
