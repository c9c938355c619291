package audit

// Action is a kind of act in the audit log.
type Action struct {
	Name    string // dotted: the object, and what happens to it
	Meaning string // one line
	Subject string // what the entry's subject is; empty: it has none
}

// Actions returns all actions, in the order of the documentation.
func Actions() []Action { return append([]Action(nil), actions...) }

// Known reports whether an action has this name.
func Known(name string) bool {
	for _, a := range actions {
		if a.Name == name {
			return true
		}
	}
	return false
}

var actions = []Action{
	{"pair.code", "a pairing code was made", "the user it is for, if it is bound to one"},
	{"device.paired", "a device paired with a pairing code", "device"},
	{"device.added", "a new device came with an app token", "device"},
	{"device.renamed", "a device got another display name", "device"},
	{"device.rights", "the rights of a device changed", "device"},
	{"device.joined", "a device joined the conversation of another", "device"},
	{"device.left", "a device left a conversation", "device"},
	{"device.unbound", "a device was unbound from its token", "device"},
	{"device.revoked", "a device was revoked", "device"},
	{"device.dropped", "a device that nobody had approved for a week was dropped", "device"},
	{"device.rotated", "the owner had the token of a device replaced", "device"},
	{"device.renewed", "a device took the token that replaces its own", "device"},
	{"user.approved", "a user was approved", "user"},
	{"user.revoked", "the approval of a user was revoked", "user"},
	{"token.added", "a token was added", "label of the token"},
	{"token.removed", "a token was removed", "label of the token"},
	{"home.set", "a device became the home channel", "device"},
	{"home.cleared", "the home channel was cleared", ""},
	{"delivery.sent", "the owner sent a text or a file to a device", "device"},
	{"api_user.added", "a user of the API proxy was added", "user name"},
	{"api_user.removed", "a user of the API proxy was removed", "user name"},
	{"api_user.password", "the password of a user of the API proxy was changed", "user name"},
	{"api_key.added", "a key for the API proxy was made", "name of its user"},
	{"api_key.removed", "a key for the API proxy was removed", "name of its user"},
	{"api_login.failed", "logins to the API proxy failed, or keys were wrong: one entry for ten minutes", ""},
	{"admin.link", "a one-time link to the admin UI was made", ""},
	{"admin.login", "somebody logged in to the admin UI with a link or the admin token", ""},
	{"admin.token", "somebody gave the admin token, and is asked for a passkey next", ""},
	{"admin.login_failed", "a login to the admin UI failed", ""},
	{"admin.logout", "somebody logged out of the admin UI", ""},
	{"passkey.added", "a passkey for the admin UI was registered", "passkey"},
	{"passkey.renamed", "a passkey got another name", "passkey"},
	{"passkey.removed", "a passkey was removed", "passkey"},
	{"passkey.login", "somebody logged in to the admin UI with a passkey", "passkey"},
	{"passkey.suspect", "a passkey was rejected because its counter went back: it may have been copied", "passkey"},
	{"app.opened", "a link that opens the page of the app was made", ""},
	{"settings.reloaded", "the server read its tokens and certificate again, after SIGHUP", ""},
	{"backup.written", "a copy of the database was written", "file"},
	{"backup.restored", "the server started on a backup: entries that are newer than the backup are missing", ""},
}
