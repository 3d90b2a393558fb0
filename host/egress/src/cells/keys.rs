//! Commands of a cell as who asks for keys: in the name of the call that runs there, whose person is asked.

use super::{Caller, Client};
use base::envelope::Failure;
use base::target::Target;
use futures_util::future::BoxFuture;
use keys::{Asker, Keyring, Wanted};
use leaks::Value;
use policy::keys::Lender;
use policy::scope::Scope;
use std::sync::Arc;

fn nobody() -> Failure {
    Failure::denied("no call of this host runs in the cell that could ask for a key")
}

impl Client {
    /// The call that runs, if its commands get keys.
    fn running(&self) -> Result<(Arc<Caller>, Arc<Scope>), Failure> {
        let (caller, runs) = self.network.caller();
        let caller = caller.filter(|caller| runs && caller.judge.lender().is_some()).ok_or_else(nobody)?;
        let scope = caller.scope.upgrade().ok_or_else(nobody)?;
        Ok((caller, scope))
    }
}

impl Asker for Client {
    fn keyring(&self) -> Result<Keyring, Failure> {
        let (caller, _) = self.running()?;
        caller.judge.lender().map(Lender::keyring).ok_or_else(nobody)
    }

    fn ask<'a>(&'a self, wanted: &'a Wanted) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (caller, scope) = self.running()?;
            caller.judge.lender().ok_or_else(nobody)?.ask(wanted, &scope).await
        })
    }

    fn refuse(&self, refusal: &Failure) {
        self.network.refuse(refusal);
    }

    fn lent(&self, server: &Target, password: &Value) -> Result<(), Failure> {
        let (caller, scope) = self.running()?;
        scope.secrets.guard(&format!("git:{}", server.server()), password.expose());
        if let Some(lender) = caller.judge.lender() {
            lender.note_lent();
        }
        // What a person allowed before knew of no password.
        caller.decided.lock().retain(|known, _| *known == server.server());
        Ok(())
    }
}
