//! `bobbin::host::Sql` on the simulated world.

use std::rc::Rc;

use bobbin::host::{Param, Rows, Sql};
use bobbin::{Code, Error, Result};

use super::fault::At;
use super::member::Member;
use super::statement::Statement;
use super::world::World;

/// The database as the object sees it.
#[derive(Clone)]
pub struct SimSql {
    pub(super) world: Rc<World>,
    pub(super) member: Rc<Member>,
    pub(super) life: u64,
}

/// What is answered to a process that is gone.
pub(super) fn gone() -> Error {
    Error::new(Code::Overloaded, "The process is gone.")
}

impl SimSql {
    pub(super) fn alive(&self) -> bool {
        self.world.alive(&self.member, self.life)
    }

    /// Whether the process lives to run this statement; a fault may strike it where it writes.
    fn begin(&self, statement: &'static str) -> Result<()> {
        if !self.alive() {
            return Err(gone());
        }
        if Statement::of(statement).writes {
            self.world.point(At::Write, statement);
            self.member.touch();
        }
        Ok(())
    }
}

impl Sql for SimSql {
    fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()> {
        self.begin(statement)?;
        self.member.database.run(statement, params)
    }

    fn read(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        reader: &mut dyn FnMut(&mut dyn Rows) -> Result<()>,
    ) -> Result<()> {
        self.begin(statement)?;
        self.member.database.read(statement, params, reader)
    }

    fn size(&self) -> i64 {
        self.member.database.size()
    }
}
