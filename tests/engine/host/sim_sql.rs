//! `bobbin::host::Sql` on the simulated world.

use std::ops::ControlFlow;
use std::rc::Rc;

use bobbin::host::{Cell, Param, Sql};
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

    fn execute(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        row: &mut dyn FnMut(&[Cell]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if !self.alive() {
            return Err(gone());
        }
        if Statement::of(statement).writes {
            self.world.point(At::Write, statement);
            self.member.touch();
        }
        self.member.database.execute(statement, params, row)
    }
}

impl Sql for SimSql {
    fn run(&self, statement: &'static str, params: &[Param<'_>]) -> Result<()> {
        self.execute(statement, params, &mut |_| Ok(ControlFlow::Continue(())))
    }

    fn each(
        &self,
        statement: &'static str,
        params: &[Param<'_>],
        row: &mut dyn FnMut(&[Cell]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.execute(statement, params, row)
    }

    fn size(&self) -> i64 {
        self.member.database.size()
    }
}
