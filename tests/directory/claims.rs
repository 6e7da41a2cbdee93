//! Idempotent creation.

use bobbin::directory::DirectoryCall;

use crate::call;
use crate::host::World;

const DAY_US: i64 = 86_400_000_000;

fn claim(key: &str, hash: &str, thread_id: &str) -> DirectoryCall {
    DirectoryCall::Claim { key: key.into(), hash: hash.into(), thread_id: thread_id.into() }
}

#[test]
fn a_repeated_request_gets_the_first_ones_thread_even_from_a_restarted_object() {
    let world = World::new();
    assert_eq!(call(&world.open(), &claim("k", "h", "t1")).1["threadId"], "t1");
    assert_eq!(call(&world.open(), &claim("k", "h", "t2")).1["threadId"], "t1");
    assert_eq!(call(&world.open(), &claim("other", "h", "t3")).1["threadId"], "t3");
}

#[test]
fn another_body_under_the_same_key_is_a_mismatch_and_changes_nothing() {
    let directory = World::new().open();
    call(&directory, &claim("k", "h", "t1"));
    let (status, body) = call(&directory, &claim("k", "h2", "t2"));
    assert_eq!((status, body["error"]["code"].as_str()), (422, Some("idempotency_mismatch")));
    assert_eq!(call(&directory, &claim("k", "h", "t3")).1["threadId"], "t1");
}

#[test]
fn a_key_is_free_again_after_a_day() {
    let world = World::new();
    let directory = world.open();
    call(&directory, &claim("k", "h", "t1"));
    world.now_us.set(world.now_us.get() + DAY_US - 1);
    assert_eq!(call(&directory, &claim("k", "h", "t2")).1["threadId"], "t1");
    world.now_us.set(world.now_us.get() + 1);
    assert_eq!(call(&directory, &claim("k", "h2", "t3")).1["threadId"], "t3");
}

#[test]
fn old_keys_go_as_new_ones_come() {
    let world = World::new();
    let directory = world.open();
    for n in 0..100 {
        call(&directory, &claim(&format!("old{n}"), "h", "t"));
    }
    world.now_us.set(world.now_us.get() + DAY_US);
    for n in 0..60 {
        call(&directory, &claim(&format!("new{n}"), "h", "t"));
    }
    assert_eq!(world.count("SELECT count(*) FROM claims"), 60);
}

#[test]
fn a_key_has_a_length() {
    let directory = World::new().open();
    for key in [String::new(), "k".repeat(256)] {
        let (status, body) = call(&directory, &claim(&key, "h", "t"));
        assert_eq!((status, body["error"]["field"].as_str()), (400, Some("Idempotency-Key")));
    }
    assert_eq!(call(&directory, &claim(&"k".repeat(255), "h", "t")).0, 200);
}
