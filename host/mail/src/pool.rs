//! Connections that are kept for the next call: those of a session to its accounts. They end with it, and when nobody uses them for some time.

use super::connection::Connection;
use super::trouble::Trouble;
use super::{Access, login};
use config::MailSection;
use parking_lot::Mutex;
use policy::mail::is_same_folder;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections to an account.
const MOST: usize = 3;
/// How long one is kept that nobody uses. Servers end them after 30 minutes at the earliest (RFC 3501, 5.4).
const IDLE: Duration = Duration::from_secs(300);
/// How often that is looked at.
const IDLE_LOOK: Duration = Duration::from_secs(30);

/// The connections of a session, by plugin and account.
#[derive(Default)]
pub(crate) struct Mailboxes(Mutex<HashMap<(String, String), Arc<Pool>>>);

impl Mailboxes {
    pub(super) fn of(&self, access: &Access<'_>) -> Arc<Pool> {
        let key = (access.grant.owner(), access.account.to_owned());
        let mut all = self.0.lock();
        match all.get(&key) {
            Some(pool) if pool.section == *access.section => pool.clone(),
            Some(_) | None => {
                let pool = Arc::new(Pool::new(access.section.clone()));
                all.insert(key, pool.clone());
                pool
            }
        }
    }
}

/// The connections to one account.
pub(super) struct Pool {
    /// As it was when they were made.
    section: MailSection,
    room: Arc<Semaphore>,
    idle: Mutex<Vec<(Instant, Connection)>>,
    /// One logs in after the other: of a wrong password the server hears once.
    entrance: tokio::sync::Mutex<()>,
}

/// A connection that somebody uses.
pub(super) struct Lease {
    pub(super) connection: Connection,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    fn new(section: MailSection) -> Self {
        Self {
            section,
            room: Arc::new(Semaphore::new(MOST)),
            idle: Mutex::default(),
            entrance: tokio::sync::Mutex::default(),
        }
    }

    /// A connection: one that has the folder open, else any that is kept, else a new one.
    pub(super) async fn lease(
        self: &Arc<Self>,
        access: &Access<'_>,
        folder: Option<&str>,
        is_new: bool,
    ) -> Result<Lease, Trouble> {
        let permit = self.room.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Trouble::Lost("nobody uses it any more".into()))?;
        let kept = if is_new { None } else { self.take(folder) };
        let connection = match kept {
            Some(connection) => connection,
            None => {
                let _entrance = self.entrance.lock().await;
                let connection = login::connect(access).await?;
                tokio::spawn(watch(Arc::downgrade(self)));
                connection
            }
        };
        Ok(Lease { connection, pool: self.clone(), _permit: permit })
    }

    fn take(&self, folder: Option<&str>) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let has_it = |connection: &Connection| {
            connection
                .opened
                .as_ref()
                .zip(folder)
                .is_some_and(|(opened, folder)| is_same_folder(&opened.folder, folder))
        };
        let at = idle.iter().position(|(_, connection)| has_it(connection)).or(idle.len().checked_sub(1))?;
        Some(idle.remove(at).1)
    }

    /// Ends those that have been idle for some time. Returns whether there are others.
    async fn end_idle(&self) -> bool {
        let ended: Vec<_> = self.idle.lock().extract_if(.., |(since, _)| since.elapsed() >= IDLE).collect();
        for (_, connection) in ended {
            connection.log_out().await;
        }
        !self.idle.lock().is_empty() || self.room.available_permits() < MOST
    }
}

async fn watch(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE_LOOK).await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.end_idle().await {
            return;
        }
    }
}

impl Lease {
    /// Keeps the connection for the next call, if it can be used.
    pub(super) fn give_back(self) {
        let Self { connection, pool, _permit } = self;
        if connection.is_broken {
            return;
        }
        pool.idle.lock().push((Instant::now(), connection));
    }
}

/// Something that is done by one connection.
pub(super) trait Work: Sync {
    type Output: Send;

    /// The folder that it is about.
    fn folder(&self) -> Option<&str>;

    fn run(&self, connection: &mut Connection) -> impl Future<Output = Result<Self::Output, Trouble>> + Send;
}

impl Access<'_> {
    /// Does it; where the connection breaks off on the way, once more on a new one.
    pub(super) async fn have_done<W: Work>(&self, work: &W) -> Result<W::Output, Trouble> {
        let pool = self.scope.session.slot::<Mailboxes>().of(self);
        for is_new in [false, true] {
            let mut lease = pool.lease(self, work.folder(), is_new).await?;
            let done = work.run(&mut lease.connection).await;
            lease.give_back();
            match done {
                Err(Trouble::Lost(_)) if !is_new => {}
                done => return done,
            }
        }
        Err(Trouble::Lost("it ended the connection twice".into()))
    }
}
