//! The object's one alarm, as the platform keeps it.

/// First retry of a handler that threw; each further one doubles it.
pub const RETRY_US: i64 = 2_000_000;
/// Retries before the platform gives the alarm up.
pub const RETRIES: u32 = 6;

/// The slot and the handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alarm {
    /// When it is due; what `getAlarm()` tells. Null while the handler runs, unless that set it again.
    pub due_us: Option<i64>,
    /// Its handler has started and not ended. This is on disk: a crash makes it fire again at once.
    pub in_flight: bool,
    /// A handler runs in this process; alarms of one object never overlap.
    pub running: bool,
    retries: u32,
}

impl Alarm {
    /// `setAlarm` or `deleteAlarm`.
    pub fn set(&mut self, due_us: Option<i64>) {
        self.due_us = due_us;
        // A new alarm replaces the one in flight: after a crash only the new one fires.
        self.in_flight = false;
    }

    /// Whether the platform is about to try a handler again that threw.
    pub fn retrying(&self) -> bool {
        self.retries > 0 && self.due_us.is_some()
    }

    /// When the handler would start next.
    pub fn next_us(&self) -> Option<i64> {
        if self.running { None } else { self.due_us }
    }

    /// The handler starts.
    pub fn start(&mut self) {
        self.due_us = None;
        self.in_flight = true;
        self.running = true;
    }

    /// The handler returned.
    pub fn returned(&mut self) {
        self.running = false;
        self.in_flight = false;
        self.retries = 0;
    }

    /// The handler threw: retried, unless it had set a new alarm; after the last retry it is gone.
    pub fn threw(&mut self, now_us: i64) {
        self.running = false;
        self.in_flight = false;
        if self.due_us.is_none() && self.retries < RETRIES {
            self.due_us = Some(now_us + (RETRY_US << self.retries));
            self.retries += 1;
        } else if self.due_us.is_none() {
            self.retries = 0;
        }
    }

    /// The process died.
    pub fn crashed(&mut self, now_us: i64) {
        self.running = false;
        if std::mem::take(&mut self.in_flight) && self.due_us.is_none() {
            self.due_us = Some(now_us);
        }
    }

    /// What is on disk goes back to what it was; the handler of this process goes on.
    pub fn roll_back(&mut self, to: Alarm) {
        self.due_us = to.due_us;
        self.in_flight = to.in_flight;
    }
}
