package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// peer is one connection as a library gives it. Its methods may be called from any goroutine.
type peer interface {
	send(p []byte) error
	ping()
}

// reader is who gets what a peer sends. p is its own only until text returns; an error ends the connection.
type reader interface {
	text(p []byte) error
	end()
}

type opener func(peer) reader

const (
	pingEvery = 25 * time.Second
	pingSlots = 250 // the devices are spread over the interval
)

// yard is the state of the server: who is connected.
type yard struct {
	all func([]peer, []byte)

	mu      sync.RWMutex
	devices map[string]*device
	slots   [pingSlots][]*device
	joined  int
	gateway peer
	turns   int64
}

type device struct {
	y    *yard
	peer peer
	id   string
	slot int

	mu      sync.Mutex
	asked   string // the id of the text that is answered
	message string // the id of the answer
	steps   int
	seq     int64
}

// noMessage is the id of what belongs to no turn; ids have one length.
const noMessage = "000000000000000000"

func (y *yard) device(p peer) reader { return &device{y: y, peer: p, message: noMessage} }

func (y *yard) find(id string) *device {
	y.mu.RLock()
	defer y.mu.RUnlock()
	return y.devices[id]
}

func (d *device) end() {
	y := d.y
	y.mu.Lock()
	defer y.mu.Unlock()
	if d.id == "" || y.devices[d.id] != d {
		return
	}
	delete(y.devices, d.id)
	slot := y.slots[d.slot]
	for i, other := range slot {
		if other == d {
			slot[i] = slot[len(slot)-1]
			y.slots[d.slot] = slot[:len(slot)-1]
			return
		}
	}
}

// ping pings each device once in the interval, a few at a time. It makes up for what it was late.
func (y *yard) ping() {
	begin := time.Now()
	var now []*device
	for done := 0; ; time.Sleep(pingEvery / pingSlots) {
		for due := int(time.Since(begin) / (pingEvery / pingSlots)); done < due; done++ {
			y.mu.RLock()
			now = append(now[:0], y.slots[done%pingSlots]...)
			y.mu.RUnlock()
			for _, d := range now {
				d.peer.ping()
			}
		}
	}
}

const ready = `{"t":"ready","session":"mobile:%s","capabilities":{"text":true,"audio":true,"media":true,"prompt":true,"edit":true,` +
	`"typing":true,"avatar":true,"deliver":true,"resume":true,"accepted":true,"stop":true,"delta":true,"tool":false,"media_url":true,` +
	`"push":false,"shared":false,"call":["devices.list"],"max_media_bytes":8388608,"max_frame_bytes":16777216,"chunk_bytes":3145728,` +
	`"max_parts":2048,"min_chunk_bytes":4096,"max_uploads":8,"prompt_seconds":300},"protocol":1,"server":"yardstick/0.00000",` +
	`"approved":true,"agent":"online","resume":{"epoch":"000000000000","from":1,"to":0,"lost":false}}`

const inbound = `{"type":"inbound","bufferId":"%[1]s","event":{"text":%[2]s,"message_type":"text","message_id":"%[1]s","source":` +
	`{"platform":"relay","chat_id":"%[3]s","chat_type":"dm","chat_name":"Bench","user_id":"%[3]s","user_name":"Bench","thread_id":null,` +
	`"chat_topic":null}}}` + "\n"

// text is a frame of a device.
func (d *device) text(p []byte) error {
	var f struct {
		T      string `json:"t"`
		ID     string `json:"id"`
		To     string `json:"to"`
		Text   string `json:"text"`
		Device struct {
			ID string `json:"id"`
		} `json:"device"`
	}
	if err := json.Unmarshal(p, &f); err != nil {
		return err
	}
	switch f.T {
	case "hello":
		d.join(f.Device.ID)
		return d.peer.send(fmt.Appendf(nil, ready, d.id))
	case "ping":
		return d.peer.send(fmt.Appendf(nil, `{"t":"pong","id":"%s","time":"%s"}`, f.ID, time.Now().UTC().Format("2006-01-02T15:04:05.000Z")))
	case "text":
		return d.ask(f.ID, f.Text)
	case "deliver":
		d.y.deliver(f.To, f.Text)
		return d.peer.send([]byte(`{"t":"delivered","id":"` + f.ID + `","queued":false}`))
	}
	return errors.New("unknown frame")
}

func (d *device) join(id string) {
	y := d.y
	y.mu.Lock()
	defer y.mu.Unlock()
	d.id, d.slot = id, y.joined%pingSlots
	y.joined++
	y.devices[id] = d
	y.slots[d.slot] = append(y.slots[d.slot], d)
}

// ask begins a turn.
func (d *device) ask(id, text string) error {
	d.y.mu.Lock()
	d.y.turns++
	turn, gateway := d.y.turns, d.y.gateway
	d.y.mu.Unlock()
	d.mu.Lock()
	d.asked, d.message, d.steps = id, fmt.Sprintf("%018x", turn), 0
	d.mu.Unlock()
	for _, f := range []string{`{"t":"accepted","id":"` + id + `","duplicate":false,"queued":false}`, `{"t":"avatar","state":"thinking"}`, `{"t":"typing"}`} {
		if err := d.peer.send([]byte(f)); err != nil {
			return err
		}
	}
	if gateway == nil {
		return errors.New("no gateway")
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return err
	}
	return gateway.send(fmt.Appendf(nil, inbound, "m"+strconv.FormatInt(turn, 10)+"-00000000", quoted, d.id))
}

// everyone as the receiver of a delivery are all devices but the sender.
const everyone = "all"

func (y *yard) deliver(to, text string) {
	if to != everyone {
		if d := y.find(to); d != nil {
			_ = d.say(text, false, true)
		}
		return
	}
	y.mu.RLock()
	peers := make([]peer, 0, len(y.devices))
	for id, d := range y.devices {
		if id != "sender" {
			peers = append(peers, d.peer)
		}
	}
	y.mu.RUnlock()
	frame, _ := jsontext.AppendQuote([]byte(`{"t":"message","id":"`+noMessage+`","text":`), text)
	y.all(peers, append(frame, `,"chunk":{"index":0,"total":1},"final":true,"seq":1}`...))
}

// say sends a message frame. The end of an answer names the text that was asked, and every final one has a number.
func (d *device) say(text string, edit, final bool) error {
	d.mu.Lock()
	b := make([]byte, 0, len(text)+160)
	b = append(append(append(b, `{"t":"message","id":"`...), d.message...), `","text":`...)
	b, err := jsontext.AppendQuote(b, text)
	if edit {
		b = append(b, `,"edit":true`...)
	}
	b = strconv.AppendBool(append(b, `,"chunk":{"index":0,"total":1},"final":`...), final)
	if final {
		if edit {
			b = append(append(append(b, `,"reply_to":"`...), d.asked...), '"')
		}
		d.seq++
		b = strconv.AppendInt(append(b, `,"seq":`...), d.seq, 10)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.peer.send(append(b, '}'))
}
