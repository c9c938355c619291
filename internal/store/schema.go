package store

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations upgrade a database from version i to i+1. Never change a published one: add another.
var migrations = []string{`
CREATE TABLE meta (k TEXT PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE device (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, platform TEXT NOT NULL, app TEXT NOT NULL,
  user_id TEXT NOT NULL, user_name TEXT NOT NULL,
  label TEXT NOT NULL,               -- of the token that the device is bound to; '' = not bound
  token_hash TEXT NOT NULL,          -- of the device's own token; '' = none
  epoch TEXT NOT NULL,               -- the life of its outbox
  floor INTEGER NOT NULL,            -- the outbox goes back to here: everything up to it is gone
  sent INTEGER NOT NULL,             -- the newest frame that some connection was sent
  revoked INTEGER NOT NULL, created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL);
CREATE INDEX device_token ON device(token_hash) WHERE token_hash <> '';
CREATE INDEX device_user ON device(user_id);

-- Accepted messages. A row stays for a day after it is done, without its body, so that the same id is known again.
CREATE TABLE inbox (
  n INTEGER PRIMARY KEY AUTOINCREMENT, device INTEGER NOT NULL, id TEXT, at INTEGER NOT NULL,
  state INTEGER NOT NULL,            -- 0 waiting, 1 taken by the agent, 2 done
  texts INTEGER NOT NULL DEFAULT 0,  -- messages and files that its turn has stored
  body BLOB, hash TEXT, UNIQUE (device, id));
CREATE INDEX inbox_open ON inbox(device, n) WHERE state < 2;
CREATE INDEX inbox_at ON inbox(at);

CREATE TABLE outbox (
  device INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind INTEGER NOT NULL, body BLOB NOT NULL, hash TEXT,
  PRIMARY KEY (device, seq)) WITHOUT ROWID;

-- Messages that were begun and have no final yet.
CREATE TABLE open_message (
  device INTEGER NOT NULL, id TEXT NOT NULL, n INTEGER NOT NULL, reply_to TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (device, id)) WITHOUT ROWID;

-- What agents said lately, to know it when they say it again: hashes of final messages, by the input they answer.
CREATE TABLE said (
  device INTEGER NOT NULL, n INTEGER NOT NULL, sum BLOB NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (device, n, sum)) WITHOUT ROWID;

CREATE TABLE card (
  id TEXT PRIMARY KEY, device INTEGER NOT NULL, n INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  state INTEGER NOT NULL,            -- 0 open, 1 decided, 2 settled: the agent knows
  option_id TEXT NOT NULL DEFAULT '', text TEXT NOT NULL DEFAULT '', expired INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX card_live ON card(device) WHERE state < 2;
CREATE INDEX card_expires ON card(expires_at);

CREATE TABLE delivery (
  sender TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, queued INTEGER NOT NULL,
  PRIMARY KEY (sender, id)) WITHOUT ROWID;
CREATE INDEX delivery_at ON delivery(at);

CREATE TABLE invite (hash TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) WITHOUT ROWID;
`, `
-- What was delivered unasked, and how far it came. Rows of version 1 keep their id only: their device is 0.
ALTER TABLE delivery RENAME TO delivery_1;
DROP INDEX delivery_at;
CREATE TABLE delivery (
  n INTEGER PRIMARY KEY AUTOINCREMENT, sender TEXT NOT NULL, id TEXT,
  fresh INTEGER NOT NULL,            -- the id is still known, so that the same delivery is made once
  at INTEGER NOT NULL,
  queued INTEGER NOT NULL,           -- what its sender was answered
  source TEXT NOT NULL,              -- deliver, cron
  job TEXT NOT NULL, device INTEGER NOT NULL, seq INTEGER NOT NULL, message TEXT NOT NULL,
  sent_at INTEGER NOT NULL DEFAULT 0, acked_at INTEGER NOT NULL DEFAULT 0, seen_at INTEGER NOT NULL DEFAULT 0,
  expired_at INTEGER NOT NULL DEFAULT 0);
INSERT INTO delivery(sender, id, fresh, at, queued, source, job, device, seq, message)
  SELECT sender, id, 1, at, queued, 'deliver', '', 0, 0, '' FROM delivery_1 ORDER BY at;
DROP TABLE delivery_1;
CREATE UNIQUE INDEX delivery_id ON delivery(sender, id) WHERE fresh=1;
CREATE INDEX delivery_open ON delivery(device, seq) WHERE seen_at=0 AND expired_at=0;
CREATE INDEX delivery_at ON delivery(at);

-- Conversations of several devices. A message belongs to one, which is that of its device otherwise.
ALTER TABLE device ADD COLUMN conversation TEXT NOT NULL DEFAULT ''; -- id of the device whose conversation it has joined
CREATE INDEX device_conversation ON device(conversation) WHERE conversation <> '';
ALTER TABLE inbox ADD COLUMN conversation INTEGER NOT NULL DEFAULT 0;
UPDATE inbox SET conversation=device;
DROP INDEX inbox_open;
CREATE INDEX inbox_open ON inbox(conversation, n) WHERE state < 2;
ALTER TABLE card ADD COLUMN decided_by TEXT NOT NULL DEFAULT ''; -- id of the device that answered

-- What a device has not taken into its outbox yet of what came in the conversation it shares.
CREATE TABLE share (
  n INTEGER PRIMARY KEY AUTOINCREMENT, device INTEGER NOT NULL, kind INTEGER NOT NULL, body BLOB NOT NULL, hash TEXT);
CREATE INDEX share_device ON share(device, n);

-- Beginnings of the last final messages, for replies that quote them: the outbox forgets what the device has.
CREATE TABLE quote (
  device INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (device, id)) WITHOUT ROWID;
CREATE INDEX quote_at ON quote(at);

ALTER TABLE invite ADD COLUMN device TEXT NOT NULL DEFAULT ''; -- id of the one that has used the code, which may again

-- Where devices that are away are notified.
CREATE TABLE push (
  device INTEGER NOT NULL, endpoint TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (device, endpoint)) WITHOUT ROWID;

-- Entries of the outbox that were notified of, so that none is twice.
CREATE TABLE notice (
  device INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
  withdrawn INTEGER NOT NULL,        -- nothing of it is shown any more
  PRIMARY KEY (device, seq)) WITHOUT ROWID;
CREATE INDEX notice_at ON notice(at);
`, `
-- What the owner lets a device do.
ALTER TABLE device ADD COLUMN may_write INTEGER NOT NULL DEFAULT 1;
ALTER TABLE device ADD COLUMN may_answer INTEGER NOT NULL DEFAULT 1;
ALTER TABLE device ADD COLUMN may_call INTEGER NOT NULL DEFAULT 1;

-- People who log in at the front door of the API.
CREATE TABLE front_user (
  id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  password TEXT NOT NULL,            -- its hash, with how it was made
  created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL, seen_at INTEGER NOT NULL);

-- What their cookies hold, by its hash.
CREATE TABLE front_token (
  hash TEXT PRIMARY KEY, login TEXT NOT NULL, user_id TEXT NOT NULL,
  refresh INTEGER NOT NULL,          -- it only gives new ones
  at INTEGER NOT NULL, until INTEGER NOT NULL,
  parent TEXT NOT NULL,              -- hash of the one that gave it; '' once it was used, or from a password
  spent_at INTEGER NOT NULL);        -- one that it gave was used; 0: not yet
CREATE INDEX front_token_login ON front_token(login);
CREATE INDEX front_token_user ON front_token(user_id);
CREATE INDEX front_token_parent ON front_token(parent);
CREATE INDEX front_token_until ON front_token(until);

-- Whose the things of Hermes' API are.
CREATE TABLE front_owner (
  kind TEXT NOT NULL,                -- session, run, response, job
  id TEXT NOT NULL, user_id TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (kind, id));
CREATE INDEX front_owner_user ON front_owner(user_id, kind);
CREATE INDEX front_owner_at ON front_owner(kind, at);
`, `
-- Which files are on their way: few entries name one.
CREATE INDEX outbox_file ON outbox(hash) WHERE hash IS NOT NULL;

-- Each row of a text to all devices is a row in each index, too: those which only sweeps use cost more than they spare.
DROP INDEX quote_at;
ALTER TABLE delivery RENAME TO delivery_3;
DROP INDEX delivery_id;
DROP INDEX delivery_open;
DROP INDEX delivery_at;
CREATE TABLE delivery (
  n INTEGER PRIMARY KEY, sender TEXT NOT NULL, id TEXT,
  fresh INTEGER NOT NULL,            -- the id is still known, so that the same delivery is made once
  at INTEGER NOT NULL,
  queued INTEGER NOT NULL,           -- what its sender was answered
  source TEXT NOT NULL,              -- deliver, cron
  job TEXT NOT NULL, device INTEGER NOT NULL, seq INTEGER NOT NULL, message TEXT NOT NULL,
  sent_at INTEGER NOT NULL DEFAULT 0, acked_at INTEGER NOT NULL DEFAULT 0, seen_at INTEGER NOT NULL DEFAULT 0,
  expired_at INTEGER NOT NULL DEFAULT 0);
INSERT INTO delivery SELECT * FROM delivery_3;
DROP TABLE delivery_3;
CREATE UNIQUE INDEX delivery_id ON delivery(sender, id) WHERE fresh=1;
CREATE INDEX delivery_open ON delivery(device, seq) WHERE seen_at=0 AND expired_at=0;
`, `
-- What owners, pairing codes and new devices did. Rows are only added; old ones are swept.
CREATE TABLE audit (
  n INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
  actor TEXT NOT NULL,               -- who: socket, admin, device:ID, code, user:ID, server
  origin TEXT NOT NULL,              -- from where: an address, or the uid at the other end of the admin socket
  action TEXT NOT NULL,              -- what: a dotted name, such as device.revoke
  subject TEXT NOT NULL,             -- the device, user, token label or setting it was done to
  detail TEXT NOT NULL);
CREATE INDEX audit_at ON audit(at);
CREATE TRIGGER audit_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE n=NEW.n)
  BEGIN SELECT RAISE(ABORT, 'entries of the audit log are never replaced'); END;
CREATE TRIGGER audit_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'entries of the audit log are never changed'); END;
CREATE TRIGGER audit_dropped BEFORE DELETE ON audit WHEN NOT EXISTS (SELECT 1 FROM meta WHERE k='audit_sweep')
  BEGIN SELECT RAISE(ABORT, 'only a sweep drops entries of the audit log'); END;

-- A pairing code names the user that its device belongs to; without one the device makes a new user.
ALTER TABLE invite ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
ALTER TABLE invite ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0; -- its device may answer cards at once
ALTER TABLE invite ADD COLUMN life INTEGER NOT NULL DEFAULT 0;    -- of its device's own token, in ms; 0 = for ever

ALTER TABLE device ADD COLUMN answers_at INTEGER NOT NULL DEFAULT 0;  -- a new device may not answer cards before
ALTER TABLE device ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;  -- of its own token; 0 = never
ALTER TABLE device ADD COLUMN next_hash TEXT NOT NULL DEFAULT '';     -- of the token that replaces its own once it is acknowledged
ALTER TABLE device ADD COLUMN rotate INTEGER NOT NULL DEFAULT 0;      -- its own token is to be replaced when it comes next
CREATE INDEX device_next_token ON device(next_hash) WHERE next_hash <> '';
ALTER TABLE device ADD COLUMN approved_at INTEGER NOT NULL DEFAULT 0; -- when its user was first seen to be approved; 0 = never
ALTER TABLE device ADD COLUMN was_user TEXT NOT NULL DEFAULT '';      -- of an unbound device: the user it had, whose is what waits for it
ALTER TABLE device ADD COLUMN notices INTEGER NOT NULL DEFAULT 0;     -- its app shows notices of new devices
UPDATE device SET was_user=user_id, user_id='', user_name='' WHERE label='';
UPDATE device SET approved_at=created_at; -- those of before are not held against their token
CREATE INDEX device_label ON device(label) WHERE approved_at=0;

-- When a token of an app or a sender was last used, by its label.
CREATE TABLE token_use (label TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;

-- Bytes that a device or token made the server store on a day, counted in days since 1970.
CREATE TABLE upload_day (
  account TEXT NOT NULL,             -- device:ID, token:LABEL
  day INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (account, day)) WITHOUT ROWID;

-- Passkeys that open the admin UI.
CREATE TABLE passkey (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, credential BLOB NOT NULL,
  created_at INTEGER NOT NULL, used_at INTEGER NOT NULL) WITHOUT ROWID;

-- Keys by which programs use the API in place of a login. Of a key its hash is kept.
CREATE TABLE front_key (
  id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, user_id TEXT NOT NULL, label TEXT NOT NULL,
  created_at INTEGER NOT NULL, until INTEGER NOT NULL, -- 0 = for ever
  used_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX front_key_user ON front_key(user_id);
CREATE INDEX front_key_until ON front_key(until);
`}

// migrate upgrades the schema, one version per transaction. It rejects a database of a newer
// program.
func migrate(ctx context.Context, c *sql.Conn) error {
	var version int
	if err := c.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if version > len(migrations) {
		return fmt.Errorf("the database has schema version %d, but this program supports %d: run the newer program, or restore a backup", version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		text := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT", migrations[version], version+1)
		if _, err := c.ExecContext(ctx, text); err != nil {
			_, _ = c.ExecContext(ctx, "ROLLBACK")
			return fmt.Errorf("migrate to schema version %d: %w", version+1, err)
		}
	}
	return nil
}
