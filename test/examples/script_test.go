package examples

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/png"
	"regexp"
	"testing"
	"time"

	"hermes-mobile/internal/push/pushtest"
)

// record plays the script and returns one real frame of every type.
func record(t *testing.T) *recording {
	s := startServer(t)
	rec := &recording{frames: map[string][]byte{}}
	phone, own, epoch := pair(s, rec)
	talk(phone)
	cards(phone)
	files(phone)
	rest(phone)
	deliver(s, rec, phone)
	seq := away(phone)
	stranger(s, rec)
	resume(s, rec, phone, own, epoch, seq)
	reader, tablet := share(s, rec, own, epoch, seq)
	notify(s, rec, reader, tablet)
	return rec
}

// pair connects a phone by a one-time code.
func pair(s *server, rec *recording) (phone *client, own, epoch string) {
	var invitation struct{ Code string }
	if err := json.Unmarshal(s.command("pair", "--json"), &invitation); err != nil {
		s.t.Fatal(err)
	}
	phone = s.dial(rec)
	phone.send("hello-pair", `{"t":"hello","pair":%q,"device":{"id":"tel-1","name":"Phone","platform":"android","app":"demo/1.2"},`+
		`"user":{"id":"anna","name":"Anna"},"accept":["delta","tool"]}`, invitation.Code)
	ready := phone.expect("ready-paired", "t", "ready", "token", present)
	span, _ := ready["resume"].(map[string]any)
	return phone, ready.text("token"), object(span).text("epoch")
}

// talk has a reply streamed, one in pieces, one whole, and one stopped.
func talk(c *client) {
	c.send("text", `{"t":"text","id":"m1","text":"Tell me in a few words what the weather will be like on the coast tomorrow and whether I need a coat"}`)
	c.expect("accepted", "t", "accepted", "id", "m1")
	c.expect("avatar", "t", "avatar", "state", "thinking")
	c.expect("typing", "t", "typing", "stop", absent)
	c.expect("message-step", "t", "message", "edit", true, "final", false, "append", absent)
	c.expect("message-final", "t", "message", "edit", true, "final", true, "reply_to", "m1")
	c.expect("typing-stop", "t", "typing", "stop", true)

	c.send("", `{"t":"text","id":"m2","text":"/demo long 4100"}`)
	c.expect("message-piece", "t", "message", "final", false, "edit", absent)
	c.expect("message-last-piece", "t", "message", "final", true, "reply_to", "m2")

	c.send("", `{"t":"text","id":"m13","text":"/demo stream 100"}`) // long enough that steps reach a slow client, too
	c.expect("message-append", "t", "message", "append", present)
	c.expect("", "t", "message", "final", true, "reply_to", "m13")

	c.send("text-reply", `{"t":"text","id":"m3","text":"/demo twice","reply_to":"m2"}`)
	c.expect("message", "t", "message", "text", "one", "final", true)
	c.expect("", "t", "message", "text", "two")

	c.send("", `{"t":"text","id":"m4","text":"/demo slow 600"}`)
	c.expect("", "t", "accepted", "id", "m4")
	c.expect("", "t", "typing", "stop", absent)
	c.send("stop", `{"t":"stop","id":"s1"}`)
	c.expect("", "t", "accepted", "id", "s1")
	c.expect("message-interrupted", "t", "message", "interrupted", true)
}

// cards answers one card by an option and one by own words.
func cards(c *client) {
	c.send("", `{"t":"text","id":"m5","text":"/demo approval"}`)
	card := c.expect("prompt", "t", "prompt", "kind", "exec_approval")
	c.send("answer", `{"t":"prompt","id":"a1","prompt_id":%q,"option_id":"once"}`, card.text("id"))
	c.expect("prompt-done", "t", "prompt_done", "option_id", "once")
	c.expect("", "t", "accepted", "id", "a1")
	c.send("", `{"t":"text","id":"m6","text":"/demo clarify"}`)
	card = c.expect("prompt-clarify", "t", "prompt", "kind", "clarify")
	c.send("answer-words", `{"t":"prompt","id":"a2","prompt_id":%q,"option_id":"other","text":"a spreadsheet"}`, card.text("id"))
	c.expect("", "t", "prompt_done", "option_id", "other")
	c.expect("", "t", "message", "text", "clarify: a spreadsheet")
}

// files sends and gets files.
func files(c *client) {
	c.send("audio", `{"t":"audio","id":"v1","format":"wav","data":%q,"text":"what is the weather"}`, base64.StdEncoding.EncodeToString(silence()))
	c.expect("", "t", "message", "reply_to", "v1")
	c.send("media-up", `{"t":"media","id":"f1","kind":"image","mime":"image/png","filename":"dot.png","caption":"Look","data":%q,"part":0,"parts":1}`,
		base64.StdEncoding.EncodeToString(dot()))
	c.expect("", "t", "message", "reply_to", "f1")
	c.send("", `{"t":"text","id":"m7","text":"/demo image"}`)
	c.expect("media", "t", "media", "data", present)
	c.send("", `{"t":"text","id":"m8","text":"/demo file 9000000"}`)
	c.expect("media-url", "t", "media", "url", present)
}

// rest shows tools, pings, calls and errors.
func rest(c *client) {
	c.send("", `{"t":"text","id":"m9","text":"/demo tool"}`)
	c.expect("tool", "t", "tool", "state", "progress")
	c.expect("", "t", "message", "text", "tool: done")
	c.send("ping", `{"t":"ping","id":"p1"}`)
	c.expect("pong", "t", "pong")
	c.send("call", `{"t":"call","id":"c1","method":"devices.list","params":{}}`)
	c.expect("result", "t", "result", "id", "c1")
	c.send("commands", `{"t":"call","id":"c3","method":"commands.list","params":{}}`)
	c.expect("commands-result", "t", "result", "id", "c3")
	c.send("", `{"t":"call","id":"c2","method":"models.list"}`)
	c.expect("result-error", "t", "result", "id", "c2")
	c.send("", `{"t":"text","id":"m10","text":" "}`)
	c.expect("error", "t", "error", "ref", "m10")
}

// deliver sends the phone something from a connection with a delivery token.
func deliver(s *server, rec *recording, phone *client) {
	cron := s.dial(rec)
	defer cron.close()
	cron.send("hello-sender", `{"t":"hello","token":%q,"device":{"id":"cron-1"}}`, deliverToken)
	cron.expect("ready-sender", "t", "ready")
	cron.send("deliver", `{"t":"deliver","id":"d1","to":"mobile:tel-1","text":"The backup is done.","require_live":true}`)
	cron.expect("delivered", "t", "delivered")
	phone.expect("message-delivered", "t", "message", "text", "The backup is done.")
}

// away lets the agent go and come back, and returns the newest seq.
func away(c *client) (seq int) {
	c.send("", `{"t":"text","id":"m11","text":"/demo away 1"}`)
	c.expect("capabilities", "t", "capabilities", "agent", "away")
	c.send("", `{"t":"text","id":"m12","text":"still there?"}`)
	c.expect("accepted-queued", "t", "accepted", "queued", true)
	c.expect("", "t", "capabilities", "agent", "online")
	last := c.expect("", "t", "message", "final", true, "reply_to", "m12")
	newest, _ := last["seq"].(float64)
	return int(newest)
}

var code = regexp.MustCompile(`\b[A-HJ-NP-Z2-9]{8}\b`)

// stranger connects a device that nobody has approved, with the app's token, and has it approved by its code.
func stranger(s *server, rec *recording) {
	const hello = `{"t":"hello","token":%q,"device":{"id":"tab-1","name":"Tablet","platform":"ios"}}`
	tablet := s.dial(rec)
	tablet.send("hello", hello, appToken)
	tablet.expect("ready-not-approved", "t", "ready", "approved", false)
	tablet.send("", `{"t":"text","id":"t1","text":"hello"}`)
	answer := tablet.expect("message-pairing", "t", "message")
	s.command("pairing", "approve", "mobile", code.FindString(answer.text("text")))
	tablet.expect("approved", "t", "approved")
	tablet.send("", `{"t":"text","id":"t2","text":"/demo profiles"}`)
	tablet.expect("", "t", "message", "final", true, "reply_to", "t2")
	tablet.send("profiles", `{"t":"call","id":"c5","method":"profiles.list","params":{}}`)
	tablet.expect("profiles-result", "t", "result", "id", "c5")
	tablet.send("profile-choose", `{"t":"call","id":"c6","method":"profiles.choose","params":{"name":"work"}}`)
	tablet.expect("profile-choose-result", "t", "result", "id", "c6")

	for range 5 {
		tablet = s.dial(rec)
		tablet.send("", hello, appToken)
		tablet.expect("", "t", "ready")
	}
	tablet = s.dial(rec)
	tablet.send("", hello, appToken)
	tablet.expect("error-retry", "t", "error", "code", "rate_limited")
}

// resume goes on where the phone was.
func resume(s *server, rec *recording, phone *client, own, epoch string, seq int) {
	phone.send("ack", `{"t":"ack","seq":%d,"seen":true}`, seq-2)
	phone.send("", `{"t":"ping","id":"p2"}`)
	phone.expect("", "t", "pong", "id", "p2")
	phone.close()
	phone = s.dial(rec)
	phone.send("hello-resume", `{"t":"hello","token":%q,"device":{"id":"tel-1"},"user":{"id":"anna"},"accept":["delta","tail","tool","notice"],"resume":{"epoch":%q,"seq":%d}}`, own, epoch, seq-1)
	phone.expect("ready", "t", "ready")
	phone.expect("", "t", "message", "seq", seq)
	phone.send("", `{"t":"text","id":"m14","text":"/demo stream 100"}`)
	phone.expect("message-tail-step", "t", "message", "append", present, "at", absent, "edit", absent, "final", absent)
	phone.expect("message-tail", "t", "message", "append", present, "final", true, "reply_to", "m14")
}

// share has a tablet take part in the phone's conversation, and answer a card there.
func share(s *server, rec *recording, own, epoch string, seq int) (phone, tablet *client) {
	const hello = `{"t":"hello","token":%q,"device":{"id":"tab-2","name":"Tablet"},"user":{"id":"anna"}}`
	var invitation struct{ Code string }
	if err := json.Unmarshal(s.command("pair", "--user", "anna", "--json"), &invitation); err != nil {
		s.t.Fatal(err)
	}
	tablet = s.dial(rec)
	tablet.send("", `{"t":"hello","pair":%q,"device":{"id":"tab-2","name":"Tablet","platform":"ios"},"user":{"id":"anna"}}`, invitation.Code)
	token := tablet.expect("", "t", "ready", "token", present).text("token")
	s.command("devices", "join", "tab-2", "tel-1")
	phone = s.dial(rec)
	phone.send("", `{"t":"hello","token":%q,"device":{"id":"tel-1","name":"Phone"},"user":{"id":"anna"},"accept":["notice"],"resume":{"epoch":%q,"seq":%d}}`, own, epoch, seq)
	phone.expect("", "t", "ready")
	phone.expect("notice", "t", "notice", "kind", "device_added")
	phone.expect("", "t", "notice", "kind", "device_joined", "conversation", "tel-1")
	phone.send("call-revoke", `{"t":"call","id":"c4","method":"devices.revoke","params":{"id":"tab-3"}}`)
	phone.expect("result-revoke", "t", "result", "id", "c4", "error", present)
	phone.close()
	tablet.close()
	tablet = s.dial(rec)
	tablet.send("", hello, token)
	tablet.expect("", "t", "ready", "session", "mobile:tel-1")
	phone = s.dial(rec)
	phone.send("", `{"t":"hello","token":%q,"device":{"id":"tel-1","name":"Phone"},"user":{"id":"anna"}}`, own)
	phone.expect("", "t", "ready")
	tablet.send("", `{"t":"text","id":"m20","text":"/demo approval"}`)
	phone.expect("echo", "t", "echo", "id", "m20")
	card := tablet.expect("", "t", "prompt", "kind", "exec_approval")
	tablet.send("", `{"t":"prompt","id":"a20","prompt_id":%q,"option_id":"deny"}`, card.text("id"))
	tablet.expect("error-new-device", "t", "error", "code", "forbidden", "retry_after", present)
	phone.send("", `{"t":"prompt","id":"a23","prompt_id":%q,"option_id":"deny"}`, card.text("id"))
	tablet.expect("prompt-done-by", "t", "prompt_done", "option_id", "deny")
	return phone, tablet
}

// notify has the tablet notified while it is away.
func notify(s *server, rec *recording, phone, tablet *client) {
	service := pushtest.New()
	defer service.Close()
	sub := service.Subscribe()
	got := func(name string) {
		select {
		case n := <-service.Got:
			if n.Err != nil {
				s.t.Fatal(n.Err)
			}
			rec.keep(name, []byte(n.Body))
		case <-time.After(patience):
			s.t.Fatalf("no notification %s came", name)
		}
	}
	tablet.send("push-key", `{"t":"call","id":"p1","method":"push.key","params":{}}`)
	tablet.expect("push-key-result", "t", "result", "id", "p1")
	tablet.send("push-register", `{"t":"call","id":"p2","method":"push.register","params":{"kind":"webpush","endpoint":%q,"keys":{"p256dh":%q,"auth":%q},`+
		`"content":true}}`, sub.Endpoint, sub.P256dh, sub.Auth)
	tablet.expect("push-register-result", "t", "result", "id", "p2")
	tablet.send("push-test", `{"t":"call","id":"p3","method":"push.test","params":{}}`)
	got("notice-test")
	tablet.expect("push-test-result", "t", "result", "id", "p3")
	tablet.send("", `{"t":"ack","seq":1000000}`) // all that there is
	tablet.send("", `{"t":"ping","id":"p4"}`)
	tablet.expect("", "t", "pong", "id", "p4")
	tablet.close()
	phone.expect("", "t", "prompt", "kind", "exec_approval") // of the tablet's question
	phone.send("", `{"t":"text","id":"m21","text":"/demo twice"}`)
	got("notice-message")
	phone.send("", `{"t":"text","id":"m22","text":"/demo approval"}`)
	card := phone.expect("", "t", "prompt", "kind", "exec_approval")
	got("notice-card")
	phone.send("", `{"t":"prompt","id":"a21","prompt_id":%q,"option_id":"deny"}`, card.text("id"))
	got("notice-withdraw")
}

// dot is a picture of one pixel.
func dot() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))) // a bytes.Buffer takes everything
	return b.Bytes()
}

// silence is a hundredth of a second of nothing as a WAV: 16 kHz, mono, 16 bit.
func silence() []byte {
	const size = 320
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, 36+size)...)
	b = append(b, "WAVEfmt "...)
	for _, n := range []uint32{16, 1 | 1<<16, 16000, 32000, 2 | 16<<16} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = binary.LittleEndian.AppendUint32(append(b, "data"...), size)
	return append(b, make([]byte, size)...)
}
