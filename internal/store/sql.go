package store

// writes are the statements of Tx, by name.
var writes = map[string]string{
	"begin":    `BEGIN IMMEDIATE`,
	"commit":   `COMMIT`,
	"rollback": `ROLLBACK`,

	"device.add": `INSERT INTO device(id, name, platform, app, user_id, user_name, label, token_hash, epoch, floor, sent, revoked, created_at, seen_at, expires_at, approved_at, notices)
		VALUES(?,?,?,?,?,?,?,?,?,0,0,0,?,?,?,?,?)`,
	"device.hello": `UPDATE device SET name=?, platform=?, app=?, user_id=?, user_name=?, label=?, token_hash=?, seen_at=?, expires_at=?, next_hash=?, rotate=?, approved_at=?,
		was_user=?, notices=? WHERE n=?`,
	"device.name":   `UPDATE device SET name=? WHERE n=?`,
	"device.rights": `UPDATE device SET may_write=?, may_answer=?, may_call=? WHERE n=?`,
	"device.unbind": `UPDATE device SET label='', token_hash='', next_hash='', rotate=0, expires_at=0, revoked=0, was_user=CASE user_id WHEN '' THEN was_user ELSE user_id END,
		user_id='', user_name='' WHERE n=?`,
	"device.revoke": `UPDATE device SET token_hash='', next_hash='', rotate=0, revoked=1 WHERE n=?`,
	"device.drop":   `DELETE FROM device WHERE n=?`,
	"inbox.drop":    `DELETE FROM inbox WHERE device=?`,
	"card.drop":     `DELETE FROM card WHERE device=? AND state<2`,
	"outbox.drop":   `DELETE FROM outbox WHERE device=?`,
	"token.used":    `INSERT INTO token_use(label, at) VALUES(?,?) ON CONFLICT(label) DO UPDATE SET at=max(at, excluded.at)`,
	"device.rotate": `UPDATE device SET rotate=1, expires_at=? WHERE n=?`,
	"device.renew":  `UPDATE device SET token_hash=next_hash, next_hash='', rotate=0 WHERE n=? AND next_hash=? AND next_hash<>''`,
	"device.wipe":   `UPDATE device SET epoch=?, floor=?, sent=? WHERE n=?`,
	"device.sent":   `UPDATE device SET sent=max(sent, ?), seen_at=max(seen_at, ?) WHERE n=?`,
	"device.join":   `UPDATE device SET conversation=? WHERE n=?`,
	"device.part":   `UPDATE device SET conversation='' WHERE n=?1 OR conversation<>'' AND conversation=(SELECT id FROM device WHERE n=?1)`,
	"device.floor":  `UPDATE device SET floor=max(floor, ?) WHERE n=?`,
	// These statements change no row if the change isn't allowed. So the writer alone decides, one
	// device after the other.
	"device.claim": `UPDATE device SET user_id=?2 WHERE n=?1 AND (NOT EXISTS (SELECT 1 FROM device WHERE user_id=?2 AND n<>?1)
		OR EXISTS (SELECT 1 FROM device WHERE user_id=?2 AND n<>?1 AND label=?3))`,
	"device.sole":    `UPDATE device SET user_id=?2 WHERE n=?1 AND NOT EXISTS (SELECT 1 FROM device WHERE user_id=?2 AND n<>?1 AND revoked=0)`,
	"device.few":     `UPDATE device SET user_id=?2 WHERE n=?1 AND (SELECT count(*) FROM device WHERE user_id=?2 AND revoked=0)<=?3`,
	"device.strange": `UPDATE device SET label=?2 WHERE n=?1 AND (SELECT count(*) FROM device WHERE label=?2 AND approved_at=0 AND revoked=0)<=?3`,
	"device.enter": `UPDATE device SET was_user='', created_at=max(?3, coalesce((SELECT max(created_at)+1 FROM device WHERE user_id=?2 AND n<>?1), 0)),
		answers_at=CASE WHEN EXISTS (SELECT 1 FROM device WHERE user_id=?2 AND n<>?1 AND revoked=0) THEN ?4 ELSE 0 END WHERE n=?1`,
	"device.wait": `UPDATE device SET answers_at=max(answers_at, ?2) WHERE n=?1 AND EXISTS (SELECT 1 FROM device o
		WHERE o.user_id=device.user_id AND o.n<>?1 AND o.revoked=0)`,
	"device.clamp":    `UPDATE device SET answers_at=?2 WHERE n=?1 AND answers_at>?2`,
	"device.answers":  `UPDATE device SET answers_at=answers_at WHERE id=? AND answers_at<=?`,
	"device.approved": `UPDATE device SET approved_at=?2 WHERE n=?1 AND approved_at=0`,

	"inbox.add":    `INSERT INTO inbox(conversation, device, id, at, state, body, hash) VALUES(?,?,?,?,?,?,?) ON CONFLICT(device, id) DO NOTHING`,
	"inbox.handed": `UPDATE inbox SET state=1 WHERE n=? AND state=0`,
	"inbox.back":   `UPDATE inbox SET state=0 WHERE n=? AND state=1`,
	"inbox.done":   `UPDATE inbox SET state=2, body=NULL, hash=NULL WHERE n=?`,
	"inbox.text":   `UPDATE inbox SET texts=texts+1 WHERE n=?`,
	"inbox.wipe":   `UPDATE inbox SET state=2, body=NULL, hash=NULL WHERE (device=?1 OR conversation=?1) AND state<2`,
	"inbox.gone":   `DELETE FROM inbox WHERE n=?`,

	"outbox.add":    `INSERT INTO outbox(device, seq, at, kind, body, hash) VALUES(?,?,?,?,?,?)`,
	"outbox.forget": `DELETE FROM outbox WHERE device=? AND seq<=?`,

	"share.add": `INSERT INTO share(device, kind, body, hash) SELECT n, ?2, ?3, ?4 FROM device WHERE id=?1 AND n<>?5
		UNION ALL SELECT n, ?2, ?3, ?4 FROM device WHERE conversation<>'' AND conversation=?1 AND n<>?5`,
	// Only to the devices seen last, because a user may have very many.
	"share.notice": `INSERT INTO share(device, kind, body) SELECT n, ?3, ?4 FROM device WHERE user_id=?1 AND user_id<>'' AND n<>?2 AND revoked=0 AND notices=1
		ORDER BY seen_at DESC, n LIMIT ?5`,
	"share.take": `DELETE FROM share WHERE n=?`,
	"share.wipe": `DELETE FROM share WHERE device=?`,

	"said.add": `INSERT INTO said(device, n, sum, at) VALUES(?1, CASE WHEN ?2>0 THEN ?2 ELSE coalesce((SELECT max(n) FROM said WHERE device=?1), 0) END, ?3, ?4)
		ON CONFLICT(device, n, sum) DO NOTHING`,
	"said.wipe": `DELETE FROM said WHERE device=?`,
	"said.gone": `DELETE FROM said WHERE device=? AND n=? AND sum=?`,

	"quote.keep": `INSERT INTO quote(device, id, at, text) SELECT ?1, ` + messageID + `, o.at, ` + messageStart + ` FROM outbox o
		WHERE o.device=?1 AND o.seq<=?2 AND o.kind=1 AND ` + messageID + ` IS NOT NULL ORDER BY o.seq
		ON CONFLICT(device, id) DO UPDATE SET at=excluded.at, text=excluded.text`,
	"quote.wipe": `DELETE FROM quote WHERE device=?`,
	"quote.gone": `DELETE FROM quote WHERE device=? AND id=? AND at=?`, // unless it was stored again

	"open.set":   `INSERT INTO open_message(device, id, n, reply_to, text) VALUES(?,?,?,?,?) ON CONFLICT(device, id) DO UPDATE SET text=excluded.text`,
	"open.close": `DELETE FROM open_message WHERE device=? AND id=?`,
	"open.wipe":  `DELETE FROM open_message WHERE device=?`,

	"card.add":      `INSERT INTO card(id, device, n, seq, body, expires_at, state) VALUES(?,?,?,?,?,?,0)`,
	"card.decide":   `UPDATE card SET state=1, option_id=?, text=?, expired=?, decided_by=? WHERE id=? AND state=0`,
	"card.settle":   `UPDATE card SET state=2 WHERE id=? AND state=1`,
	"card.unsettle": `UPDATE card SET state=1 WHERE id=? AND state=2`,
	"card.wipe":     `UPDATE card SET state=2, expired=1 WHERE device=? AND state<2`,
	"card.gone":     `DELETE FROM card WHERE id=?`,

	"delivery.add": `INSERT INTO delivery(sender, id, fresh, at, queued, source, job, device, seq, message) VALUES(?,?,1,?,?,?,?,?,?,?)
		ON CONFLICT(sender, id) WHERE fresh=1 DO NOTHING`,
	"delivery.sent":  `UPDATE delivery SET sent_at=?3 WHERE device=?1 AND seq>?4 AND seq<=?2 AND sent_at=0 AND seen_at=0 AND expired_at=0`,
	"delivery.acked": `UPDATE delivery SET acked_at=?3, sent_at=CASE sent_at WHEN 0 THEN ?3 ELSE sent_at END WHERE device=?1 AND seq>?4 AND seq<=?2 AND acked_at=0 AND seen_at=0 AND expired_at=0`,
	"delivery.seen": `UPDATE delivery SET seen_at=?3, acked_at=CASE acked_at WHEN 0 THEN ?3 ELSE acked_at END, sent_at=CASE sent_at WHEN 0 THEN ?3 ELSE sent_at END
		WHERE device=?1 AND seq>?4 AND seq<=?2 AND seen_at=0 AND expired_at=0`,
	"delivery.expired": `UPDATE delivery SET expired_at=?3 WHERE device=?1 AND seq<=?2 AND sent_at=0 AND seen_at=0 AND expired_at=0`,
	"delivery.stale":   `UPDATE delivery SET fresh=0 WHERE n=?`,
	"delivery.gone":    `DELETE FROM delivery WHERE n=?`,

	"invite.add": `INSERT INTO invite(hash, expires_at, user_id, trusted, life) VALUES(?,?,?,?,?) ON CONFLICT(hash) DO NOTHING`,
	// A code without a user is for a new user, except for the device that redeemed it and comes
	// again.
	"invite.redeem": `UPDATE invite SET device=?2 WHERE hash=?1 AND device IN ('', ?2) AND expires_at>?3 AND (user_id=?4 OR user_id='' AND (
		device=?2 AND EXISTS (SELECT 1 FROM device WHERE id=?2 AND user_id=?4)
		OR NOT EXISTS (SELECT 1 FROM device WHERE user_id=?4) AND NOT EXISTS (SELECT 1 FROM front_user WHERE name=lower(?4))))`,
	"invite.forget":       `DELETE FROM invite WHERE device<>'' AND device=(SELECT id FROM device WHERE n=?)`,
	"invite.user":         `DELETE FROM invite WHERE ?1<>'' AND (user_id=?1 OR device<>'' AND device IN (SELECT id FROM device WHERE user_id=?1))`,
	"front_user.add":      `INSERT INTO front_user(id, name, password, created_at, changed_at, seen_at) VALUES(?,?,?,?,?,0) ON CONFLICT(name) DO NOTHING`,
	"front_user.password": `UPDATE front_user SET password=?, changed_at=? WHERE id=?`,
	"front_user.rehash":   `UPDATE front_user SET password=? WHERE id=? AND password=?`,
	"front_user.seen":     `UPDATE front_user SET seen_at=? WHERE id=?`,
	"front_user.remove":   `DELETE FROM front_user WHERE id=?`,

	"front_token.add":   `INSERT INTO front_token(hash, login, user_id, refresh, at, until, parent, spent_at) VALUES(?,?,?,?,?,?,?,0)`,
	"front_token.spend": `UPDATE front_token SET spent_at=? WHERE spent_at=0 AND hash=?`,
	"front_token.adopt": `UPDATE front_token SET parent='' WHERE parent=?`,
	"front_token.login": `DELETE FROM front_token WHERE login=?`,
	"front_token.user":  `DELETE FROM front_token WHERE user_id=?`,
	"front_token.sweep": `DELETE FROM front_token WHERE until<?`,

	"front_key.add":    `INSERT INTO front_key(id, hash, user_id, label, created_at, until, used_at) VALUES(?,?,?,?,?,?,0)`,
	"front_key.use":    `UPDATE front_key SET used_at=max(used_at, ?) WHERE id=?`,
	"front_key.remove": `DELETE FROM front_key WHERE id=?`,
	"front_key.user":   `DELETE FROM front_key WHERE user_id=?`,
	"front_key.sweep":  `DELETE FROM front_key WHERE until>0 AND until<?`,

	"front_owner.claim":  `INSERT INTO front_owner(kind, id, user_id, at) VALUES(?,?,?,?) ON CONFLICT(kind, id) DO NOTHING`,
	"front_owner.take":   `INSERT INTO front_owner(kind, id, user_id, at) VALUES(?,?,?,?) ON CONFLICT(kind, id) DO UPDATE SET user_id=excluded.user_id, at=excluded.at`,
	"front_owner.forget": `DELETE FROM front_owner WHERE kind=? AND id=?`,
	"front_owner.user":   `DELETE FROM front_owner WHERE user_id=?`,
	"front_owner.sweep":  `DELETE FROM front_owner WHERE kind=? AND at<?`,

	"invite.sweep": `DELETE FROM invite WHERE expires_at<?`,

	"push.add":    `INSERT INTO push(device, endpoint, at, body) VALUES(?,?,?,?) ON CONFLICT(device, endpoint) DO UPDATE SET at=excluded.at, body=excluded.body`,
	"push.remove": `DELETE FROM push WHERE device=? AND endpoint=?`,
	"push.wipe":   `DELETE FROM push WHERE device=?`,

	"notice.add": `INSERT OR IGNORE INTO notice(device, seq, id, at, withdrawn) SELECT o.device, o.seq, ` + entryID + `, ?3, ?4 FROM outbox o
		WHERE o.device=?1 AND o.seq>?2 AND ` + shownKinds,
	"notice.withdraw": `UPDATE notice SET withdrawn=1 WHERE device=? AND seq=?`,
	"notice.drop":     `DELETE FROM notice WHERE device=?1 AND withdrawn=1 AND seq<=(SELECT floor FROM device WHERE n=?1)`,
	"notice.wipe":     `DELETE FROM notice WHERE device=?`,
	"notice.gone":     `DELETE FROM notice WHERE device=? AND seq=?`,

	"audit.add":  `INSERT INTO audit(at, actor, origin, action, subject, detail) VALUES(?,?,?,?,?,?)`,
	"audit.drop": `DELETE FROM audit WHERE n=?`,

	"upload.set":   `INSERT INTO upload_day(account, day, bytes) VALUES(?,?,?) ON CONFLICT(account, day) DO UPDATE SET bytes=max(bytes, excluded.bytes)`,
	"upload.sweep": `DELETE FROM upload_day WHERE day<?1-1 OR day>?1+1`,

	"passkey.add": `INSERT INTO passkey(id, name, credential, created_at, used_at) SELECT ?1, ?2, ?3, ?4, 0 WHERE (SELECT count(*) FROM passkey)<?5
		ON CONFLICT(id) DO NOTHING`,
	"passkey.name":   `UPDATE passkey SET name=? WHERE id=?`,
	"passkey.used":   `UPDATE passkey SET credential=?, used_at=? WHERE id=?`,
	"passkey.remove": `DELETE FROM passkey WHERE id=?`,

	"meta.set":  `INSERT INTO meta(k, v) VALUES(?,?) ON CONFLICT(k) DO UPDATE SET v=excluded.v`,
	"meta.add":  `INSERT INTO meta(k, v) VALUES(?,?) ON CONFLICT(k) DO NOTHING`,
	"meta.drop": `DELETE FROM meta WHERE k=?`,
}

const deviceColumns = `n, id, name, platform, app, user_id, user_name, label, token_hash, epoch, floor, sent, revoked, conversation, may_write, may_answer, may_call, created_at, seen_at,
	answers_at, expires_at, next_hash, rotate, approved_at, was_user, notices`

// entryID is the id in an outbox entry o.
const entryID = `coalesce(json_extract(CAST(o.body AS TEXT), '$.message.id'), json_extract(CAST(o.body AS TEXT), '$.media.id'), json_extract(CAST(o.body AS TEXT), '$.prompt.id'), json_extract(CAST(o.body AS TEXT), '$.notice.id'), '')`

// shownKinds are the kinds of outbox entries o that a person is notified of: messages, files,
// cards, and notices.
const shownKinds = `(o.kind<=3 OR o.kind=6)`

// messageID and messageStart are the id and the beginning of the message in an outbox entry o of
// kind 1.
const (
	messageID    = `CASE WHEN json_valid(CAST(o.body AS TEXT)) THEN json_extract(CAST(o.body AS TEXT), '$.message.id') END`
	messageStart = `substr(coalesce(json_extract(CAST(o.body AS TEXT), '$.message.text'), ''), 1, 500)`
)

// unread selects the entries of outbox o that weren't written to the device, or whose notification
// it shows: messages, files, notices, and open cards.
const unread = `FROM outbox o LEFT JOIN notice n ON n.device=o.device AND n.seq=o.seq
		WHERE o.device=?1 AND o.seq>min(?2, coalesce((SELECT min(seq)-1 FROM notice WHERE device=?1 AND withdrawn=0), ?2)) AND (o.seq>?2 OR n.withdrawn=0) AND ` + shownKinds + `
		AND (o.kind<>3 OR EXISTS (SELECT 1 FROM card WHERE id=` + entryID + ` AND state=0))`

// auditFilter selects entries of the audit log. Its arguments are the fields of an AuditFilter.
const auditFilter = `WHERE n<?1 AND n>?2 AND at>=?3 AND (?4='' OR action GLOB ?4) AND (?5='' OR subject=?5 OR actor='device:'||?5)`

// queries are the statements of Store, by name.
var queries = map[string]string{
	"device.id":    `SELECT ` + deviceColumns + ` FROM device WHERE id=?`,
	"device.token": `SELECT ` + deviceColumns + ` FROM device WHERE token_hash=?1 AND token_hash<>'' UNION ALL SELECT ` + deviceColumns + ` FROM device WHERE next_hash=?1 AND next_hash<>''`,
	"device.user":  `SELECT ` + deviceColumns + ` FROM device WHERE user_id=? AND user_id<>'' ORDER BY n`,
	"device.keeping": `SELECT ` + deviceColumns + ` FROM device WHERE user_id=?1 AND user_id<>'' UNION ALL
		SELECT ` + deviceColumns + ` FROM device WHERE was_user=?1 AND was_user<>'' AND user_id=''`,
	"device.unapproved": `SELECT ` + deviceColumns + ` FROM device WHERE approved_at=0 AND created_at<? ORDER BY n`,
	"user.known":        `SELECT 1 FROM device WHERE user_id=?1 AND user_id<>'' UNION ALL SELECT 1 FROM front_user WHERE name=lower(?1) LIMIT 1`,
	"delivery.any":      `SELECT 1 FROM delivery WHERE device=? LIMIT 1`,
	"token.uses":        `SELECT label, at FROM token_use`,
	"device.list":       `SELECT ` + deviceColumns + ` FROM device ORDER BY seen_at DESC, n`,
	"device.work": `SELECT id FROM device WHERE n IN (SELECT conversation FROM inbox WHERE state<2 UNION SELECT device FROM open_message
		UNION SELECT device FROM card WHERE state<2 UNION SELECT device FROM share) ORDER BY n`,
	"device.members": `SELECT id FROM device WHERE conversation=? AND conversation<>'' ORDER BY n`,
	"device.sharing": `SELECT 1 FROM device WHERE conversation<>'' LIMIT 1`,
	"share.any":      `SELECT 1 FROM share LIMIT 1`,

	"inbox.open":   `SELECT n, id, state, texts, body FROM inbox WHERE conversation=? AND state<2 ORDER BY n`,
	"inbox.newest": `SELECT coalesce(max(n), 0) FROM inbox`,
	"inbox.seen":   `SELECT 1 FROM inbox WHERE device=? AND id=?`,
	"inbox.old":    `SELECT n FROM inbox WHERE at<? AND state=2`,

	"outbox.after": `SELECT seq, at, kind, body FROM outbox WHERE device=? AND seq>? ORDER BY seq LIMIT ?`,
	"outbox.since": `SELECT seq FROM outbox WHERE device=? AND at>=? ORDER BY seq LIMIT 1`,
	// SQLite stores the length before a blob, so none of these reads the bodies.
	"outbox.bounds": `SELECT count(*), coalesce(max(seq), 0), coalesce(sum(length(body)), 0) FROM outbox WHERE device=?`,
	"outbox.bytes":  `SELECT coalesce(sum(length(body)), 0) FROM outbox WHERE device=? AND seq>?`,
	"outbox.sizes":  `SELECT seq, length(body) FROM outbox WHERE device=? AND seq>? ORDER BY seq`,
	"outbox.cards":  `SELECT seq, at, kind, body FROM outbox WHERE device=? AND kind=3 ORDER BY seq`,
	"outbox.aging": `SELECT d.id, o.at, (SELECT count(*) FROM outbox WHERE device=d.n AND at<?1) FROM device d
		JOIN outbox o ON o.device=d.n AND o.seq=(SELECT min(seq) FROM outbox WHERE device=d.n) WHERE o.at<?1 ORDER BY o.at LIMIT ?2`,
	// Most devices lose nothing, and the ends of their outbox show it: the first entry is the
	// oldest, and there are no more entries than numbers. So a check costs a few rows per device,
	// not one per entry.
	"outbox.old": `SELECT d.n, (SELECT max(seq) FROM outbox WHERE device=d.n AND at<?1) FROM device d
		JOIN outbox o ON o.device=d.n AND o.seq=(SELECT min(seq) FROM outbox WHERE device=d.n) WHERE o.at<?1`,
	"outbox.many": `SELECT n, seq FROM (SELECT d.n, (SELECT seq FROM outbox WHERE device=d.n ORDER BY seq DESC LIMIT 1 OFFSET ?1) AS seq FROM device d
		WHERE (SELECT max(seq) FROM outbox WHERE device=d.n)-(SELECT min(seq) FROM outbox WHERE device=d.n)>=?1) WHERE seq IS NOT NULL`,

	"share.list": `SELECT n, kind, body, coalesce(hash, '') FROM share WHERE device=? AND n>? ORDER BY n LIMIT ?`,

	"said.known": `SELECT 1 FROM said WHERE device=?1 AND sum=?3 AND n=CASE WHEN ?2>0 THEN ?2 ELSE (SELECT max(n) FROM said WHERE device=?1) END`,

	"said.old": `SELECT device, n, sum FROM said WHERE at<?`,

	"quote.id": `SELECT text FROM (SELECT o.seq, ` + messageStart + ` AS text FROM outbox o
		WHERE o.device=?1 AND o.kind=1 AND instr(o.body, CAST(?2 AS BLOB))>0 AND ` + messageID + `=?2
		UNION ALL SELECT 0, text FROM quote WHERE device=?1 AND id=?2) ORDER BY seq DESC LIMIT 1`,
	"quote.old": `SELECT device, id, at FROM quote WHERE at<?`,
	"quote.many": `SELECT device, id, at FROM (SELECT device, id, at, row_number() OVER (PARTITION BY device ORDER BY at DESC, id) AS r FROM quote
		WHERE device IN (SELECT device FROM quote GROUP BY device HAVING count(*)>?1)) WHERE r>?1`,

	"open.list": `SELECT id, n, reply_to, text FROM open_message WHERE device=? ORDER BY id`,

	"card.id":   `SELECT id, device, n, seq, body, expires_at, state, option_id, text, expired, decided_by FROM card WHERE id=?`,
	"card.old":  `SELECT id FROM card WHERE expires_at<? AND state=2`,
	"card.live": `SELECT id, device, n, seq, body, expires_at, state, option_id, text, expired, decided_by FROM card WHERE device=? AND state<2 ORDER BY seq`,

	"delivery.old":  `SELECT n FROM delivery WHERE fresh=1 AND at<?`,
	"delivery.past": `SELECT n FROM delivery WHERE fresh=0 AND at<?`,
	"delivery.many": `SELECT n FROM delivery WHERE fresh=0 AND n<=(SELECT max(n) FROM delivery)-?`,

	"delivery.id": `SELECT queued FROM delivery WHERE sender=? AND id=? AND fresh=1`,
	"delivery.trail": `SELECT coalesce(max(seq), 0), coalesce(min(iif(sent_at=0, seq, NULL)), 0), coalesce(min(iif(acked_at=0, seq, NULL)), 0), coalesce(min(seq), 0)
		FROM delivery WHERE device=? AND seen_at=0 AND expired_at=0`,
	"delivery.list": `SELECT d.n, d.at, d.source, d.sender, coalesce(d.id, ''), d.job, v.id, d.message, d.sent_at, d.acked_at, d.seen_at, d.expired_at
		FROM delivery d JOIN device v ON v.n=d.device WHERE (?1='' OR v.id=?1) ORDER BY d.n DESC`,
	"push.list":    `SELECT body FROM push WHERE device=? ORDER BY at, endpoint`,
	"notice.old":   `SELECT device, seq FROM notice WHERE at<?`,
	"notice.shown": `SELECT seq, id FROM notice WHERE device=? AND withdrawn=0 ORDER BY seq`,
	"notice.due": `SELECT d.id FROM device d WHERE d.revoked=0 AND EXISTS (SELECT 1 FROM push WHERE device=d.n) AND EXISTS (SELECT 1 FROM outbox o
		WHERE o.device=d.n AND o.seq>max(d.sent, d.floor) AND ` + shownKinds + ` AND NOT EXISTS (SELECT 1 FROM notice WHERE device=o.device AND seq=o.seq)) ORDER BY d.n`,
	"unread.count": `SELECT count(*), count(*)-count(n.seq) ` + unread,
	"unread.list":  `SELECT o.seq, o.kind, ` + entryID + `, n.seq IS NOT NULL ` + unread + ` ORDER BY o.seq DESC LIMIT ?`,

	"front_user.list":    `SELECT id, name, password, created_at, changed_at, seen_at FROM front_user ORDER BY name`,
	"front_user.name":    `SELECT id, name, password, created_at, changed_at, seen_at FROM front_user WHERE name=?`,
	"front_token.hash":   `SELECT t.login, t.user_id, u.name, t.refresh, t.until, t.parent, t.spent_at FROM front_token t JOIN front_user u ON u.id=t.user_id WHERE t.hash=?`,
	"front_token.logins": `SELECT login FROM front_token WHERE user_id=? GROUP BY login ORDER BY max(at) DESC, login`,
	"front_key.hash":     frontKey + ` WHERE k.hash=?`,
	"front_key.id":       frontKey + ` WHERE k.id=?`,
	"front_key.list":     frontKey + ` ORDER BY u.name, k.created_at, k.id`,
	"front_owner.id":     `SELECT user_id FROM front_owner WHERE kind=? AND id=?`,
	"front_owner.user":   `SELECT id FROM front_owner WHERE user_id=? AND kind=?`,

	"audit.newest": `SELECT n, at, actor, origin, action, subject, detail FROM audit ` + auditFilter + ` ORDER BY n DESC LIMIT ?6`,
	"audit.oldest": `SELECT n, at, actor, origin, action, subject, detail FROM audit ` + auditFilter + ` ORDER BY n LIMIT ?6`,
	"audit.start":  `SELECT coalesce(min(n)-1, ?2) FROM (SELECT n FROM audit ` + auditFilter + ` ORDER BY n DESC LIMIT ?6)`,
	"audit.old":    `SELECT n FROM audit WHERE at<?`,
	"audit.counts": `SELECT action, count(*) FROM audit GROUP BY action`,
	"audit.excess": `SELECT n FROM audit WHERE action=? ORDER BY n DESC LIMIT -1 OFFSET ?`,
	"upload.day":   `SELECT account, day, bytes FROM upload_day WHERE day>=? ORDER BY account, day`,
	"db.free":      `SELECT freelist_count*page_size FROM pragma_freelist_count, pragma_page_size`,

	"passkey.list": `SELECT id, name, credential, created_at, used_at FROM passkey ORDER BY created_at, id`,
	"passkey.id":   `SELECT id, name, credential, created_at, used_at FROM passkey WHERE id=?`,

	"invite.valid": `SELECT hash, expires_at, user_id, trusted, life, device FROM invite WHERE hash=? AND device IN ('', ?) AND expires_at>?`,
	"invite.used":  `SELECT 1 FROM invite WHERE device=? AND device<>''`,
	"meta.get":     `SELECT v FROM meta WHERE k=?`,
	"hash.all": `SELECT hash FROM inbox WHERE hash IS NOT NULL AND state<2 UNION SELECT hash FROM outbox WHERE hash IS NOT NULL
		UNION SELECT hash FROM share WHERE hash IS NOT NULL`,
}
