-- The schema of version 5, frozen. It is never changed: migrations of later versions are tested from here.

CREATE TABLE meta (k TEXT PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE device (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, platform TEXT NOT NULL, app TEXT NOT NULL,
  user_id TEXT NOT NULL, user_name TEXT NOT NULL,
  label TEXT NOT NULL,               -- of the token that the device is bound to; '' = not bound
  token_hash TEXT NOT NULL,          -- of the device's own token; '' = none
  epoch TEXT NOT NULL,               -- the life of its outbox
  floor INTEGER NOT NULL,            -- the outbox goes back to here: everything up to it is gone
  sent INTEGER NOT NULL,             -- the newest frame that some connection was sent
  revoked INTEGER NOT NULL, created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, conversation TEXT NOT NULL DEFAULT '',
  may_write INTEGER NOT NULL DEFAULT 1, may_answer INTEGER NOT NULL DEFAULT 1, may_call INTEGER NOT NULL DEFAULT 1, answers_at INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL DEFAULT 0, next_hash TEXT NOT NULL DEFAULT '', rotate INTEGER NOT NULL DEFAULT 0, approved_at INTEGER NOT NULL DEFAULT 0,
  was_user TEXT NOT NULL DEFAULT '', notices INTEGER NOT NULL DEFAULT 0);
CREATE INDEX device_conversation ON device(conversation) WHERE conversation <> '';
CREATE INDEX device_token ON device(token_hash) WHERE token_hash <> '';
CREATE INDEX device_next_token ON device(next_hash) WHERE next_hash <> '';
CREATE INDEX device_label ON device(label) WHERE approved_at=0;
CREATE INDEX device_user ON device(user_id);

-- Accepted messages. A row stays for a day after it is done, without its body, so that the same id is known again.
CREATE TABLE inbox (
  n INTEGER PRIMARY KEY AUTOINCREMENT, device INTEGER NOT NULL, id TEXT, at INTEGER NOT NULL,
  state INTEGER NOT NULL,            -- 0 waiting, 1 taken by the agent, 2 done
  texts INTEGER NOT NULL DEFAULT 0,  -- messages and files that its turn has stored
  body BLOB, hash TEXT, conversation INTEGER NOT NULL DEFAULT 0, UNIQUE (device, id));
CREATE INDEX inbox_open ON inbox(conversation, n) WHERE state < 2;
CREATE INDEX inbox_at ON inbox(at);

CREATE TABLE outbox (
  device INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind INTEGER NOT NULL, body BLOB NOT NULL, hash TEXT,
  PRIMARY KEY (device, seq)) WITHOUT ROWID;
CREATE INDEX outbox_file ON outbox(hash) WHERE hash IS NOT NULL;

-- Messages that were begun and have no final yet.
CREATE TABLE open_message (
  device INTEGER NOT NULL, id TEXT NOT NULL, n INTEGER NOT NULL, reply_to TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (device, id)) WITHOUT ROWID;

CREATE TABLE said (
  device INTEGER NOT NULL, n INTEGER NOT NULL, sum BLOB NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (device, n, sum)) WITHOUT ROWID;

CREATE TABLE card (
  id TEXT PRIMARY KEY, device INTEGER NOT NULL, n INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  state INTEGER NOT NULL,            -- 0 open, 1 decided, 2 settled: the agent knows
  option_id TEXT NOT NULL DEFAULT '', text TEXT NOT NULL DEFAULT '', expired INTEGER NOT NULL DEFAULT 0, decided_by TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE INDEX card_live ON card(device) WHERE state < 2;
CREATE INDEX card_expires ON card(expires_at);

CREATE TABLE delivery (
  n INTEGER PRIMARY KEY, sender TEXT NOT NULL, id TEXT,
  fresh INTEGER NOT NULL,            -- the id is still known, so that the same delivery is made once
  at INTEGER NOT NULL,
  queued INTEGER NOT NULL,           -- what its sender was answered
  source TEXT NOT NULL,              -- deliver, cron
  job TEXT NOT NULL, device INTEGER NOT NULL, seq INTEGER NOT NULL, message TEXT NOT NULL,
  sent_at INTEGER NOT NULL DEFAULT 0, acked_at INTEGER NOT NULL DEFAULT 0, seen_at INTEGER NOT NULL DEFAULT 0,
  expired_at INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX delivery_id ON delivery(sender, id) WHERE fresh=1;
CREATE INDEX delivery_open ON delivery(device, seq) WHERE seen_at=0 AND expired_at=0;

CREATE TABLE invite (hash TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, device TEXT NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '',
  trusted INTEGER NOT NULL DEFAULT 0, life INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;

CREATE TABLE share (
  n INTEGER PRIMARY KEY AUTOINCREMENT, device INTEGER NOT NULL, kind INTEGER NOT NULL, body BLOB NOT NULL, hash TEXT);
CREATE INDEX share_device ON share(device, n);

-- Beginnings of the last final messages, for replies that quote them: the outbox forgets what the device has.
CREATE TABLE quote (
  device INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (device, id)) WITHOUT ROWID;

-- Where devices that are away are notified.
CREATE TABLE push (
  device INTEGER NOT NULL, endpoint TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (device, endpoint)) WITHOUT ROWID;

CREATE TABLE notice (
  device INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
  withdrawn INTEGER NOT NULL,        -- nothing of it is shown any more
  PRIMARY KEY (device, seq)) WITHOUT ROWID;
CREATE INDEX notice_at ON notice(at);

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

CREATE TABLE token_use (label TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE upload_day (
  account TEXT NOT NULL,             -- device:ID, token:LABEL
  day INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (account, day)) WITHOUT ROWID;

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

-- Rows of every kind, as version 5 wrote them.
INSERT INTO quote(device, id, at, text) VALUES(1, 'r1', 1767366000000, 'one');
INSERT INTO meta(k, v) VALUES('home', 'tel-1');
INSERT INTO device(n, id, name, platform, app, user_id, user_name, label, token_hash, epoch, floor, sent, revoked, created_at, seen_at, may_write, may_answer, may_call)
  VALUES(1, 'tel-1', 'Phone', 'android', 'demo/1.2', 'anna', 'Anna', 'main', '', 'k3f9', 2, 4, 0, 1767366000000, 1767366060000, 1, 0, 1),
        (2, 'tel-2', '', '', '', 'bert', '', 'device:tel-2', 'aa11', 'x0', 0, 0, 1, 1767366000000, 1767366000000, 1, 1, 1);
INSERT INTO inbox(n, conversation, device, id, at, state, texts, body, hash)
  VALUES(1, 1, 1, 'm1', 1767366000000, 2, 1, NULL, NULL), (2, 1, 1, 'm2', 1767366001000, 1, 2, '{"Text":"two"}', 'f00d'),
        (3, 1, 1, NULL, 1767366002000, 0, 0, '{"Text":"three"}', NULL);
INSERT INTO outbox(device, seq, at, kind, body, hash)
  VALUES(1, 3, 1767366000000, 1, '{"message":{"id":"r1","text":"one"}}', NULL), (1, 5, 1767366001000, 2, '{"media":{"id":"r2"}}', 'beef');
INSERT INTO open_message(device, id, n, reply_to, text) VALUES(1, 'r3', 2, 'm2', 'half a');
INSERT INTO card(id, device, n, seq, body, expires_at, state, option_id, text, expired)
  VALUES('c1', 1, 2, 4, '{"ID":"c1"}', 1767366300000, 0, '', '', 0), ('c2', 1, 2, 2, '{"ID":"c2"}', 1767366300000, 1, 'deny', '', 1);
INSERT INTO delivery(sender, id, fresh, at, queued, source, job, device, seq, message) VALUES('tel-2', 'd1', 1, 1767366000000, 1, 'deliver', '', 1, 3, 'r1');
INSERT INTO invite(hash, expires_at) VALUES('cafe', 4102444800000);
INSERT INTO push(device, endpoint, at, body) VALUES(1, 'https://push.example.net/x1', 1767366000000, '{"kind":"webpush"}');
INSERT INTO notice(device, seq, id, at, withdrawn) VALUES(1, 3, 'r1', 1767366000000, 0), (1, 5, 'r2', 1767366001000, 1);
INSERT INTO front_user(id, name, password, created_at, changed_at, seen_at)
  VALUES('u1', 'anna', '$argon2id$v=19$m=32768,t=3,p=1$c2FsdA$aGFzaA', 1767366000000, 1767366001000, 1767366002000);
INSERT INTO front_token(hash, login, user_id, refresh, at, until, parent, spent_at)
  VALUES('ab01', 'l1', 'u1', 0, 1767366000000, 4102444800000, '', 0), ('ab02', 'l1', 'u1', 1, 1767366000000, 4102444800000, '', 1767366000000);
INSERT INTO front_owner(kind, id, user_id, at) VALUES('session', 's1', 'u1', 1767366000000), ('job', 'j1', 'u1', 1767366000000);
INSERT INTO audit(n, at, actor, origin, action, subject, detail) VALUES(1, 1767366000000, 'socket', 'uid 1000', 'device.revoke', 'tel-2', '');
INSERT INTO token_use(label, at) VALUES('main', 1767366000000);
INSERT INTO upload_day(account, day, bytes) VALUES('device:tel-1', 20455, 1000);
INSERT INTO passkey(id, name, credential, created_at, used_at) VALUES('pk1', 'Laptop', x'01', 1767366000000, 1767366001000);
INSERT INTO front_key(id, hash, user_id, label, created_at, until, used_at) VALUES('k1', 'ac01', 'u1', 'laptop', 1767366000000, 4102444800000, 1767366001000);
PRAGMA user_version = 5;
