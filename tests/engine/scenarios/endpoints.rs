//! Custom endpoints: what natives do in the thread, what becomes of their failures, and those behind a URL.

use bobbin::access::{Caller, Via};
use bobbin::engine::{EndpointAnswer, EndpointCall, NewMessage};
use bobbin::host::Filter;
use bobbin::request::ThreadRoute;
use bobbin::{Code, Error, Result, limits};
use bytes::Bytes;
use futures::FutureExt;
use serde_json::{Value, json};

use super::{clerk, story};
use crate::host::{Answer, Handler, SECOND_US, TOOL_URL};
use crate::sim::{Answered, Ask, Sim, THREAD};
use crate::sweep::Scenario;

pub fn all() -> Vec<Scenario> {
    vec![counting(), forwarding()]
}

/// A scenario whose endpoint is scripted.
pub(super) fn with(name: &'static str, routes: &[(&str, Value)]) -> Scenario {
    let routes: serde_json::Map<String, Value> =
        routes.iter().map(|(route, run)| ((*route).to_owned(), json!({ "run": run }))).collect();
    story(name).define(move |catalog| catalog["endpoints"] = routes.into())
}

pub(super) fn native() -> Value {
    json!({ "native": "act" })
}

fn http(path: &str) -> Value {
    json!({ "http": { "url": format!("{TOOL_URL}{path}"), "headers": { "x-key": "{{env KEY}}" } } })
}

/// A native endpoint that is a function of its call.
pub(super) fn acts(
    act: impl Fn(&EndpointCall) -> Result<EndpointAnswer> + Clone + 'static,
) -> impl Fn(&Sim) + 'static {
    move |sim| {
        let act = act.clone();
        sim.world.outside.endpoint("act", move |call| {
            let (act, call) = (act.clone(), call.clone());
            Handler::Acts(0, Box::new(move || act(&call)))
        });
    }
}

async fn get(sim: &Sim, path: &str) -> Answered {
    sim.reach(Ask::of("GET", path)).await.unwrap()
}

/// Rows of the log that tell of failed endpoints, the oldest first.
async fn failures(sim: &Sim) -> Vec<Value> {
    let logs = sim.get(ThreadRoute::ListLogs, &[("order", "asc")]).await;
    logs["logs"].as_array().unwrap().iter().filter(|row| row["type"] == "endpoint").cloned().collect()
}

/// Adds to a number, and tells the agent of it.
fn count(call: &EndpointCall) -> Result<EndpointAnswer> {
    let by: i64 = call.param("by").parse().map_err(|_| Error::field("by", "`by` must be a number."))?;
    let count = call.state.get_value("count")?.unwrap_or(0) + by;
    call.state.set_value("count", &count)?;
    call.state.queue_message(NewMessage::user(format!("counted {count}")))?;
    Ok(EndpointAnswer::json(201, &json!({ "count": count })))
}

fn counting() -> Scenario {
    let reads = |call: &EndpointCall| match call.method.reads() {
        true => Ok(EndpointAnswer::json(200, &call.state.get_value("count")?.unwrap_or(Value::Null))),
        false => count(call),
    };
    with("an endpoint that writes", &[("POST /count/[by]", native()), ("GET /count", native())])
        .says(clerk)
        .setup(acts(reads))
        .drive(|sim| async move {
            let mut answers = Vec::new();
            for by in [1, 1] {
                let answered = sim.reach_surely(Ask::of("POST", &format!("/count/{by}"))).await;
                assert_eq!(answered.status, 201, "{answered:?}");
                answers.push(answered.json()["count"].as_i64().unwrap());
            }
            sim.ask("hello").await;
            answers
                .push(sim.reach_surely(Ask::of("POST", "/count/1")).await.json()["count"].as_i64().unwrap());
            assert!(answers.is_sorted_by(|a, b| a < b), "no answer comes twice: {answers:?}");
            let count = sim.reach_surely(Ask::of("GET", "/count")).await.json().as_i64().unwrap();
            let handled = sim.world.outside.handled.borrow();
            let tried = handled.iter().filter(|call| !call.method.reads()).count() as i64;
            if sim.world.faults.borrow().fired.is_empty() {
                assert_eq!((&answers[..], tried), (&[1, 2, 3][..], 3));
            }
            // Who answered has written; who was lost may have.
            assert!(
                answers.last() <= Some(&count) && 3 <= count && count <= tried,
                "{answers:?} {count} {tried}"
            );
        })
        .terms(|terms| {
            terms.one_answer = false;
            terms.more_requests = 2;
        })
        .check(|sim, history| {
            let told: Vec<&str> =
                history.texts("user").into_iter().filter(|text| text.starts_with("counted")).collect();
            let mut once = told.clone();
            once.dedup();
            assert_eq!(once, told, "each number is told once");
            // One that failed between the two has counted and told nothing.
            assert!(told.len() >= 3 || !sim.world.faults.borrow().fired.is_empty(), "{told:?}");
        })
}

#[test]
fn what_an_endpoint_wrote_is_kept_whatever_fails() {
    counting().sweep();
}

/// The request as an http endpoint receives it.
fn forwarding() -> Scenario {
    with("an http endpoint", &[("PUT /in/[name]/[*]", http("/in"))])
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("KEY".into(), "k1".into());
            sim.world.outside.server("/in", |request, _| {
                let body: Value = serde_json::from_slice(request.body.as_ref().unwrap()).unwrap();
                assert!(request.headers.contains(&("x-key".into(), "k1".into())));
                let expected = json!({
                    "threadId": THREAD, "agentId": "helper", "name": "PUT /in/[name]/[*]",
                    "requestId": body["requestId"], "idempotencyKey": body["idempotencyKey"], "method": "PUT",
                    "path": "/in/a b/c/d", "params": { "name": "a b", "*": "c/d" },
                    "query": [["q", "1"], ["q", "2"]], "headers": { "content-type": "x/y" },
                });
                let mut head = body.clone();
                let content = head.as_object_mut().unwrap().remove("bodyBase64").unwrap();
                assert_eq!((head, content), (expected, json!("AAH/")));
                Answer::status(418, "short and stout").header("x-own", "1").after(SECOND_US)
            });
        })
        .drive(|sim| async move {
            let body = vec![Bytes::from_static(&[0, 1]), Bytes::from_static(&[255])];
            let headers = vec![("content-type".to_owned(), "x/y".to_owned())];
            let ask = Ask { body, headers, ..Ask::of("PUT", "/in/a%20b/c/d?q=1&q=2") };
            let answered = sim.reach_surely(ask).await;
            assert_eq!((answered.status, &answered.body[..]), (418, &b"short and stout"[..]), "{answered:?}");
            let header = |name| answered.header(name);
            assert_eq!((header("content-type"), header("x-own")), (Some("application/json"), None));
        })
}

#[test]
fn an_http_endpoint_is_sent_the_request_and_its_answer_passes() {
    forwarding().sweep();
}

#[test]
fn a_failure_is_an_id_for_the_client_and_a_row_for_the_log() {
    let fails = |call: &EndpointCall| match call.param("how") {
        "error" => Err(Error::internal("the DETAIL")),
        "overloaded" => Err(Error::new(Code::Overloaded, "the DETAIL")),
        "panic" => panic!("the DETAIL"),
        "header" => Ok(EndpointAnswer::text(200, "x").header("x-DETAIL", "a\nb")),
        "status" => Ok(EndpointAnswer::text(42, "DETAIL")),
        other => Err(Error::new(Code::NotFound, format!("There is no way {other}."))),
    };
    with("failures", &[("POST /fail/[how]", native())])
        .setup(acts(fails))
        .drive(|sim| async move {
            let ways = ["error", "overloaded", "panic", "header", "status"];
            for (n, how) in ways.into_iter().enumerate() {
                let answered = sim.reach(Ask::of("POST", &format!("/fail/{how}"))).await.unwrap();
                let error = answered.json()["error"].clone();
                assert_eq!((answered.status, &error["code"]), (500, &json!("endpoint_failed")), "{error}");
                assert!(!error.to_string().contains("DETAIL"), "{error}");
                let rows = failures(&sim).await;
                assert_eq!(rows.len(), n + 1);
                let row = &rows[n];
                assert!(
                    row["error"].as_str().unwrap().to_lowercase().contains(if how == "status" {
                        "42"
                    } else {
                        "detail"
                    }),
                    "{row}"
                );
                let id = row["request_id"].as_str().unwrap();
                assert!(error["message"].as_str().unwrap().contains(id), "{error}");
                assert_eq!(
                    (&row["name"], &row["method"], &row["path"], &row["status"]),
                    (&json!("POST /fail/[how]"), &json!("POST"), &json!(format!("/fail/{how}")), &json!(500))
                );
                assert!(sim.world.log.borrow().last().unwrap().contains(id));
            }
            // What the endpoint refuses on purpose is told as it is, and no failure.
            let answered = sim.reach(Ask::of("POST", "/fail/otherwise")).await.unwrap();
            assert_eq!(
                (answered.status, &answered.json()["error"]["message"]),
                (404, &json!("There is no way otherwise."))
            );
            assert_eq!(failures(&sim).await.len(), ways.len());
            // The thread is none the worse for it.
            assert_eq!(sim.ask("hello").await["outcome"], "completed");
        })
        .calm();
}

#[test]
fn a_panic_ends_its_request_alone_and_listeners_come_back() {
    let writes = |call: &EndpointCall| {
        call.state.set_value("written", &true).unwrap();
        panic!("after the write");
    };
    with("a panic", &[("POST /x", native()), ("GET /slow", json!({ "native": "slow" }))])
        .setup(acts(writes))
        .setup(|sim| {
            sim.world.outside.endpoint("slow", |_| {
                Handler::Acts(2 * SECOND_US, Box::new(|| Ok(EndpointAnswer::text(200, "slow"))))
            });
        })
        .drive(|sim| async move {
            let listener = sim.listen(Filter::default(), None).await.unwrap();
            let beside = sim.clone();
            let slow = async move { get(&beside, "/slow").await };
            let panics = async {
                sim.world.pause(SECOND_US).await;
                sim.reach(Ask::of("POST", "/x")).await.unwrap()
            };
            let (slow, panicked) = futures::future::join(slow, panics).await;
            assert_eq!((slow.status, panicked.status), (200, 500));
            assert!(!listener.open.get(), "a frame may be missing: whoever listens comes back");
            let seen = sim.insist(ThreadRoute::GetValues, &[("key", "written")], None, String::new()).await;
            assert_eq!(seen.body["value"], true);
        })
        .calm();
}

#[test]
fn an_endpoint_that_does_not_answer_is_given_up() {
    with("late", &[("GET /late", native()), ("GET /soon", native()), ("GET /far", http("/far"))])
        .define(|catalog| {
            catalog["endpoints"]["GET /soon"]["timeoutMs"] = json!(1_500);
            catalog["endpoints"]["GET /far"]["timeoutMs"] = json!(2_000);
        })
        .setup(|sim| {
            sim.world.vars.borrow_mut().insert("KEY".into(), "k1".into());
            sim.world.outside.endpoint("act", |_| Handler::Never);
            sim.world.outside.server("/far", |_, _| Answer::silence());
        })
        .drive(|sim| async move {
            for (path, after_ms) in [("/late", 60_000), ("/soon", 1_500), ("/far", 2_000)] {
                let start = sim.world.now_us();
                let answered = get(&sim, path).await;
                assert_eq!(
                    (answered.status, &answered.json()["error"]["code"]),
                    (500, &json!("endpoint_failed"))
                );
                let took = sim.world.now_us() - start;
                assert!((took - after_ms * 1_000).abs() < 100_000, "{path}: {took}");
            }
            let rows = failures(&sim).await;
            let text = |n: usize| rows[n]["error"].as_str().unwrap().to_owned();
            assert_eq!(
                (text(0), text(1)),
                ("it did not answer within 60 s".into(), "it did not answer within 1.5 s".into())
            );
        })
        .calm();
}

#[test]
fn answers_of_http_endpoints_pass_up_to_499_and_fail_beyond() {
    for (answer, status, body, location) in [
        (Answer::status(201, "made"), 201, "made", None),
        (Answer::status(200, ""), 200, "", None),
        (Answer::status(204, ""), 204, "", None),
        (Answer::status(404, "not here"), 404, "not here", None),
        (
            Answer::status(302, "").header("location", "https://a.example/"),
            302,
            "",
            Some("https://a.example/"),
        ),
        (Answer::status(200, "x".repeat(limits::HTTP_TOOL_BYTES)), 200, "", None),
        (Answer::status(500, "a stack"), 500, "", None),
        (Answer::status(503, "busy"), 500, "", None),
        (Answer::refused(), 500, "", None),
        (Answer::status(200, "half").cut_after(1), 500, "", None),
        (Answer::status(200, "x".repeat(limits::HTTP_TOOL_BYTES + 1)), 500, "", None),
    ] {
        with("passing", &[("GET /x", http("/x"))])
            .setup(move |sim| {
                sim.world.vars.borrow_mut().insert("KEY".into(), "k1".into());
                let answer = answer.clone();
                sim.world.outside.server("/x", move |_, _| answer.clone());
            })
            .drive(move |sim| async move {
                let answered = get(&sim, "/x").await;
                assert_eq!((answered.status, answered.header("location")), (status, location));
                match status {
                    500 => assert_eq!(answered.json()["error"]["code"], "endpoint_failed"),
                    _ if body.is_empty() => {}
                    _ => assert_eq!(&answered.body[..], body.as_bytes()),
                }
                assert_eq!(failures(&sim).await.len(), usize::from(status == 500));
            })
            .calm();
    }
}

#[test]
fn an_http_endpoint_that_is_not_set_up_or_private_says_so_in_the_log() {
    let private = json!({ "http": { "url": "http://127.0.0.1:1/" } });
    with("not set up", &[("GET /unset", http("/x")), ("GET /private", private)])
        .drive(|sim| async move {
            for (path, says) in [("/unset", "KEY is not set"), ("/private", "private address 127.0.0.1")] {
                let answered = get(&sim, path).await;
                assert_eq!(answered.status, 500);
                assert!(!String::from_utf8_lossy(&answered.body).contains("127.0.0.1"));
                let rows = failures(&sim).await;
                assert!(rows.last().unwrap()["error"].as_str().unwrap().contains(says), "{rows:?}");
            }
        })
        .calm();
}

#[test]
fn an_endpoint_works_beside_a_run() {
    with("beside", &[("POST /count/[by]", native())])
        .setup(acts(|call| {
            let by: i64 = call.param("by").parse().unwrap();
            call.state.set_value("count", &by)?;
            call.state
                .inject_message(NewMessage { silent: true, ..NewMessage::user("aside") })
                .now_or_never()
                .unwrap()?;
            Ok(EndpointAnswer::empty(204))
        }))
        .drive(|sim| async move {
            let message = sim.send("use work").await;
            sim.until_executions(1).await;
            assert_eq!(sim.reach(Ask::of("POST", "/count/7")).await.unwrap().status, 204);
            let thread = sim.get(ThreadRoute::Get, &[]).await;
            assert_eq!(thread["thread"]["executing"], true, "the run goes on");
            assert_eq!(sim.outcome(&message).await["outcome"], "completed");
            assert!(sim.history().await.iter().any(|message| message["content"] == "aside"));
        })
        .calm();
}

#[test]
fn a_terminated_thread_still_serves_and_takes_nothing() {
    with("terminated", &[("POST /count/[by]", native()), ("GET /who", json!({ "native": "who" }))])
        .setup(acts(count))
        .setup(|sim| {
            sim.world.outside.endpoint("who", |call| {
                let identity = call.state.identity();
                Handler::Acts(0, Box::new(move || Ok(EndpointAnswer::text(200, identity?.agent_id))))
            });
        })
        .drive(|sim| async move {
            sim.terminate().await;
            assert_eq!(&get(&sim, "/who").await.body[..], b"helper");
            let answered = sim.reach(Ask::of("POST", "/count/1")).await.unwrap();
            assert_eq!((answered.status, &answered.json()["error"]["code"]), (409, &json!("terminated")));
            assert!(failures(&sim).await.is_empty());
        })
        .calm();
}

#[test]
fn who_may_ask_and_what_is_answered_elsewhere() {
    with("routes", &[("GET /a/[b]", native()), ("POST /a/[b]", native()), ("PUT /", native())])
        .setup(acts(|call| Ok(EndpointAnswer::text(200, call.path.clone()))))
        .drive(|sim| async move {
            let scope = |scope: &str| Caller { scope: scope.parse().unwrap(), via: Via::Key };
            let thread = format!("thread:{THREAD}");
            let cases = [
                ("admin", "GET", "/a/b", 200, ""),
                ("admin", "HEAD", "/a/b", 200, ""),
                ("admin", "PUT", "/", 200, ""),
                (&thread, "GET", "/a/b", 200, ""),
                (&thread, "POST", "/a/b", 403, "forbidden"),
                (&thread, "PUT", "/", 403, "forbidden"),
                ("owner:somebody", "GET", "/a/b", 404, "thread_not_found"),
                ("owner:somebody", "POST", "/nowhere", 404, "thread_not_found"),
                ("admin", "GET", "/nowhere", 404, "not_found"),
                (&thread, "POST", "/nowhere", 404, "not_found"),
                ("admin", "GET", "/a", 404, "not_found"),
                ("admin", "DELETE", "/a/b", 405, "method_not_allowed"),
                (&thread, "DELETE", "/a/b", 405, "method_not_allowed"),
                ("admin", "POST", "/", 405, "method_not_allowed"),
            ];
            for (who, method, path, status, code) in cases {
                let answered = sim.reach(Ask { caller: scope(who), ..Ask::of(method, path) }).await.unwrap();
                let error = answered.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
                assert_eq!((answered.status, error.as_str()), (status, code), "{who} {method} {path}");
                assert_eq!(answered.body.is_empty(), method == "HEAD");
                let allow = match (status, path) {
                    (405, "/") => Some("GET, PATCH, DELETE, PUT"),
                    (405, _) => Some("GET, HEAD, POST"),
                    _ => None,
                };
                assert_eq!(answered.header("allow"), allow, "{method} {path}");
            }
        })
        .calm();
}

#[test]
fn a_body_over_the_limit_is_refused() {
    with("large", &[("POST /x", native())])
        .setup(acts(|call| Ok(EndpointAnswer::bytes(200, "x/y", call.body.clone()))))
        .drive(|sim| async move {
            let most = limits::ENDPOINT_REQUEST_BYTES;
            let body =
                |bytes: usize| vec![Bytes::from(vec![7; bytes / 2]), Bytes::from(vec![8; bytes - bytes / 2])];
            let ask = |bytes: usize| Ask { body: body(bytes), ..Ask::of("POST", "/x") };
            let answered = sim.reach(ask(most)).await.unwrap();
            assert_eq!((answered.status, answered.body.len(), answered.body[most - 1]), (200, most, 8));
            let answered = sim.reach(ask(most + 1)).await.unwrap();
            assert_eq!((answered.status, &answered.json()["error"]["code"]), (413, &json!("too_large")));
            let headers = vec![("content-length".to_owned(), (most + 1).to_string())];
            let answered = sim.reach(Ask { headers, ..Ask::of("POST", "/x") }).await.unwrap();
            assert_eq!(answered.status, 413);
            assert_eq!(sim.world.outside.handled.borrow().len(), 1);
        })
        .calm();
}

#[test]
fn an_endpoint_has_the_values_that_it_declares() {
    with("env", &[("GET /declared", native())])
        .define(|catalog| {
            catalog["agents"]["helper"]["env"] = json!({ "CITY": "agent's", "OTHER": "x", "KEY": "agent's" });
            catalog["endpoints"]["GET /declared"]["variables"] = json!([
                { "name": "CITY", "type": "text" }, { "name": "KEY", "type": "secret" }, { "name": "NONE", "type": "text" },
            ]);
        })
        .setup(acts(|call| Ok(EndpointAnswer::json(200, &Value::Object(call.env.clone())))))
        .setup(|sim| drop(sim.world.vars.borrow_mut().insert("KEY".into(), "Worker'".into())))
        .drive(|sim| async move {
            let expected = json!({ "CITY": "agent's", "KEY": "Worker'" });
            assert_eq!(get(&sim, "/declared").await.json(), expected);
        })
        .calm();
}
