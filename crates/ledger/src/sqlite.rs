//! Records in an SQLite file.
//!
//! Write-ahead log with `synchronous = FULL`: a commit is synced before it returns. `BEGIN IMMEDIATE` takes SQLite's write lock
//! first, so what a transaction has read cannot change before it commits, whichever process holds it; a process that was
//! stopped and resumed holds the lock still, or has nothing. The file has exactly the two tables below, and no trigger,
//! index or view that could do something else behind a statement.
//!
//! Locks hold among those who use the same log, and the log is found by the name of the file. Who comes by another name, or
//! after the log was removed, has another log, and would spend the same budget again. So the file must have one name, and
//! file and log must be the same at the beginning of each transaction and once more after its commit: before anybody hears
//! of it. (SQLite follows symbolic links by itself. A file that is mounted at two places has two names that cannot be seen
//! from either, and must not be.)

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, params};

use crate::mark::{self, Mark};
use crate::record::{Raw, Receipt, Record};
use crate::store::{SignedHead, Store};
use crate::{Error, Result};

/// `whit` in ASCII: what the file says it is.
const APPLICATION: i32 = 0x7768_6974;
/// The version of the tables.
const TABLES_VERSION: i32 = 1;
const RECORD_TABLE: &str = "CREATE TABLE record (sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL) STRICT";
const HEAD_TABLE: &str = "CREATE TABLE head (id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, hash BLOB NOT NULL, signature BLOB NOT NULL) STRICT";

/// How long a process waits for the others. A transaction takes milliseconds; what takes longer has stopped.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the switch to a write-ahead log is tried: SQLite does not wait for that by itself.
const SWITCH_TRIES: u32 = 1000;
const SWITCH_PAUSE: Duration = Duration::from_millis(5);
/// No room is made for more rows than this beforehand, whatever a damaged file says.
const ROWS_EXPECTED_MAX: i64 = 1 << 21;

/// Whether a connection may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Write,
    Read,
}

/// A connection to a ledger's file.
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    /// As they were when the file was opened to be written.
    files: Option<Files>,
    /// Of a file that is to be written.
    mark: Option<Mark>,
    /// As it was before a transaction that only reads: later ones may be about what the transaction does not see.
    marked: Option<Receipt>,
    access: Access,
}

impl Sqlite {
    /// Opens the file, and makes it if it is to be written and is not there.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self> {
        let flags = match access {
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Before SQLite looks at it: a second log beside a second name is not to be made.
        if access == Access::Write && identity(path).is_some_and(|(_, names)| names > 1) {
            return Err(Error::Linked);
        }
        let connection = Connection::open_with_flags(path, flags).map_err(translate)?;
        Self::over(connection, path, access)
    }

    /// The same over a connection, on which a test may have set limits.
    pub(crate) fn over(connection: Connection, path: &Path, access: Access) -> Result<Self> {
        connection.busy_timeout(BUSY_TIMEOUT).map_err(translate)?;
        // The last is for systems on which a sync otherwise ends in the cache of the disk.
        for (pragma, value) in [
            ("trusted_schema", "OFF"),
            ("cell_size_check", "ON"),
            ("fullfsync", "ON"),
        ] {
            let set = connection.pragma_update(None, pragma, value);
            set.map_err(translate)?;
        }
        if access == Access::Write {
            switch_to_log(&connection)?;
            let set = connection.pragma_update(None, "synchronous", "FULL");
            set.map_err(translate)?;
        }
        let mut store = Self {
            connection,
            path: real_path(path),
            files: None,
            mark: None,
            marked: None,
            access,
        };
        store.begin()?;
        let checked = store.check_tables();
        match checked {
            Ok(()) if access == Access::Write => {
                store.run("COMMIT")?;
                store.files = Some(Files::at(&store.path)?);
                store.mark = Mark::open(&store.path)?;
            }
            _ => store.abort(),
        }
        checked.map(|()| store)
    }

    /// Makes the mark anew, durably: that of the last commit, which nobody can follow with another meanwhile.
    pub(crate) fn found_mark(&mut self) -> Result<()> {
        self.begin()?;
        let head = self.head();
        let founded =
            head.and_then(|head| Mark::found(&self.path, head.ok_or(Error::Emptied)?.head));
        self.abort();
        self.mark = Some(founded?);
        Ok(())
    }

    /// Opens the mark that is there by now.
    pub(crate) fn open_mark(&mut self) -> Result<()> {
        self.mark = Mark::open(&self.path)?;
        Ok(())
    }

    /// That nobody else can have come by, or gone to, other files than those that were opened.
    fn check_files(&self) -> Result<()> {
        match self.files {
            Some(files) if files != Files::at(&self.path)? => Err(moved()),
            _ => Ok(()),
        }
    }

    /// Makes the tables in an empty file; finds exactly them in any other.
    fn check_tables(&self) -> Result<()> {
        let number = |pragma: &str| {
            let found = self
                .connection
                .pragma_query_value(None, pragma, |row| row.get(0));
            found.map_err(translate)
        };
        let (application, version): (i32, i32) =
            (number("application_id")?, number("user_version")?);
        let tables = self.tables().map_err(translate)?;
        if (application, version) == (APPLICATION, TABLES_VERSION) {
            let expected = [HEAD_TABLE, RECORD_TABLE].map(String::from);
            return if tables == expected {
                Ok(())
            } else {
                Err(Error::NotALedger)
            };
        }
        if (application, version) != (0, 0) || !tables.is_empty() || self.access == Access::Read {
            return Err(Error::NotALedger);
        }
        for statement in [
            RECORD_TABLE,
            HEAD_TABLE,
            &format!("PRAGMA application_id = {APPLICATION}"),
            &format!("PRAGMA user_version = {TABLES_VERSION}"),
        ] {
            self.run(statement)?;
        }
        Ok(())
    }

    /// Sets something on the connection, for tests of what fails.
    #[cfg(test)]
    pub(crate) fn limit(&self, pragma: &str) {
        // Some of these answer with a row.
        let mut statement = self.connection.prepare(pragma).expect("a pragma");
        let mut rows = statement.query([]).expect("a pragma");
        while rows.next().expect("a pragma").is_some() {}
    }

    fn tables(&self) -> rusqlite::Result<Vec<String>> {
        let sql = "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    }

    fn run(&self, statement: &str) -> Result<()> {
        self.connection.execute_batch(statement).map_err(translate)
    }
}

impl Store for Sqlite {
    fn begin(&mut self) -> Result<()> {
        if self.access == Access::Read {
            // Who may read the records and not the mark is told so by `verify`.
            self.marked = mark::read(&self.path).unwrap_or_default();
        }
        self.run(match self.access {
            Access::Write => "BEGIN IMMEDIATE",
            Access::Read => "BEGIN",
        })?;
        let checked = self.check_files();
        if checked.is_err() {
            self.abort();
        }
        checked
    }

    fn rows(&mut self) -> Result<usize> {
        let sql = "SELECT coalesce(max(sequence), 0) FROM record";
        let most: i64 = self
            .connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(translate)?;
        Ok(most.clamp(0, ROWS_EXPECTED_MAX) as usize)
    }

    fn read(&mut self, first: u64, last: u64, visit: &mut dyn FnMut(&Raw<'_>)) -> Result<()> {
        // Who reads from the beginning also sees rows that cannot be.
        let first = if first <= 1 { i64::MIN } else { clamp(first) };
        let sql = "SELECT sequence, kind, body, previous, hash FROM record WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence";
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![first, clamp(last)])?;
            while let Some(row) = rows.next()? {
                visit(&Raw {
                    sequence: row.get(0)?,
                    kind: text(row, 1)?,
                    body: text(row, 2)?,
                    previous: blob(row, 3)?,
                    hash: blob(row, 4)?,
                });
            }
            Ok(())
        };
        read().map_err(translate)
    }

    fn head(&mut self) -> Result<Option<SignedHead>> {
        let sql = "SELECT sequence, hash, signature FROM head WHERE id = 1";
        let read = || -> rusqlite::Result<Option<SignedHead>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let sequence = u64::try_from(row.get::<_, i64>(0)?).ok();
            let (hash, signature) = (blob(row, 1)?.try_into(), blob(row, 2)?.try_into());
            let found = sequence.zip(hash.ok()).zip(signature.ok());
            Ok(found.map(|((sequence, hash), signature)| SignedHead {
                head: Receipt { sequence, hash },
                signature,
            }))
        };
        read().map_err(translate)
    }

    fn append(&mut self, record: &Record) -> Result<()> {
        let sql =
            "INSERT INTO record (sequence, kind, body, previous, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
        let insert = || -> rusqlite::Result<usize> {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.execute(params![
                clamp(record.sequence),
                record.kind.word(),
                record.body,
                record.previous,
                record.hash
            ])
        };
        match insert().map_err(translate)? {
            1 => Ok(()),
            _ => Err(Error::failed("a record was not inserted")),
        }
    }

    fn commit(&mut self, head: Option<&SignedHead>) -> Result<()> {
        if let Some(SignedHead { head, signature }) = head {
            let sql = "INSERT OR REPLACE INTO head (id, sequence, hash, signature) VALUES (1, ?1, ?2, ?3)";
            let put = || -> rusqlite::Result<usize> {
                let mut statement = self.connection.prepare_cached(sql)?;
                statement.execute(params![clamp(head.sequence), head.hash, signature])
            };
            put().map_err(translate)?;
        }
        if self.mark.as_ref().is_some_and(|mark| !mark.is_there()) {
            return Err(Error::MarkMissing);
        }
        self.run("COMMIT")?;
        // What went into a log that nobody will read is not durable.
        self.check_files()?;
        if let Some((mark, SignedHead { head, .. })) = self.mark.as_ref().zip(head) {
            mark.write(*head);
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<Option<Receipt>> {
        match self.access {
            Access::Write => mark::read(&self.path),
            Access::Read => Ok(self.marked),
        }
    }

    fn abort(&mut self) {
        // After some errors SQLite has rolled back by itself. If this fails, the connection is of no use, and the next
        // call says so.
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// Turns the write-ahead log on. If it is on, this asks for no lock.
fn switch_to_log(connection: &Connection) -> Result<()> {
    for _ in 0..SWITCH_TRIES {
        let switched = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match switched.map_err(translate) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(Error::failed(format!("its journal mode stays {mode}"))),
            Err(Error::Busy) => std::thread::sleep(SWITCH_PAUSE),
            Err(error) => return Err(error),
        }
    }
    Err(Error::Busy)
}

/// The bytes of a text column; empty if it is none.
fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => bytes,
        _ => &[],
    })
}

/// The bytes of a blob column; empty if it is none.
fn blob<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) => bytes,
        _ => &[],
    })
}

fn clamp(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

fn translate(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
        Some(ErrorCode::NotADatabase) => Error::NotALedger,
        Some(ErrorCode::DatabaseCorrupt) => Error::Damaged {
            sequence: 0,
            what: "its file is no longer a sound database",
        },
        _ => Error::failed(error),
    }
}

/// Where SQLite finds the file: symbolic links are followed, and a change of the working folder changes nothing.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let inside = || Some(std::fs::canonicalize(folder).ok()?.join(path.file_name()?));
    let found = std::fs::canonicalize(path).ok().or_else(inside);
    found.unwrap_or_else(|| path.to_owned())
}

fn moved() -> Error {
    Error::failed(
        "its file or the log beside it was moved, replaced or removed while it was in use",
    )
}

/// The database and its log, whatever their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Files {
    database: Identity,
    log: Identity,
}

impl Files {
    fn at(path: &Path) -> Result<Self> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let (database, names) = identity(path).ok_or_else(moved)?;
        if names > 1 {
            return Err(Error::Linked);
        }
        let (log, _) = identity(Path::new(&log)).ok_or_else(moved)?;
        Ok(Self { database, log })
    }
}

#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = ();

/// Which file a path leads to, and how many names it has.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(Identity, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some(((found.dev(), found.ino()), found.nlink()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<(Identity, u64)> {
    path.exists().then_some(((), 1))
}
