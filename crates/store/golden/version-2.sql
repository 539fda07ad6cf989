-- The tables of version 2, as they were made. Never changed: files like this are read for ever.
PRAGMA journal_mode = WAL;
CREATE TABLE journal (lsn INTEGER PRIMARY KEY, run INTEGER NOT NULL, prev INTEGER, body BLOB NOT NULL);
CREATE TABLE runs (key INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, tail INTEGER);
CREATE TABLE idle (run INTEGER PRIMARY KEY, tail INTEGER NOT NULL);
CREATE TABLE mark (low_water INTEGER NOT NULL);
INSERT INTO mark VALUES (1);
CREATE TABLE plans (digest TEXT PRIMARY KEY, format INTEGER NOT NULL, plan TEXT NOT NULL, source TEXT NOT NULL,
    overrides TEXT NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE identity (id TEXT NOT NULL, removed INTEGER NOT NULL, mark_seal BLOB NOT NULL);
INSERT INTO identity VALUES (lower(hex(randomblob(16))), 0, x'');
PRAGMA application_id = 0x776e646c;
PRAGMA user_version = 2;
