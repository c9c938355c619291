package relay

import "fmt"

// person is who speaks for a device.
type person struct{ device, user, userName string }

// identity is how a conversation is named to the gateway: whose it is, its profile, and the ids of its
// events. The lock of the gateway must be held.
type identity struct {
	device   string
	instance string // of the data folder, see Options
	config   func() *Gateway
	traits   *traits
	profiles *profiles

	person person
	named  string // the profile that the gateway named last, and wants to hear again
}

// mid is the message_id of an input. It is the same whenever the input is sent, so that a newer gateway
// drops repeats (doc/hermes/relay.md §1).
func (i *identity) mid(n int64) string { return fmt.Sprintf("m%d-%s", n, i.instance) }

// answerID is the message_id of an event that answers a card: c for the choice, w for words.
func (i *identity) answerID(kind, card string) string { return kind + card + "-" + i.instance }

// event returns an event of this conversation. t is the turn that runs, if any.
func (i *identity) event(t *turn, text, kind, mid string) event {
	name := i.person.device
	if name == "" {
		name = i.device
	}
	user := i.person.user
	if user == "" {
		user = i.device
	}
	userName := i.person.userName
	if userName == "" {
		userName = name
	}
	return event{Text: text, MessageType: kind, MessageID: mid, Source: source{
		Platform: i.traits.platform(), ChatID: i.device, ChatType: "dm", ChatName: name, UserID: user, UserName: userName,
		Profile: i.profile(t), Verified: true,
	}}
}

// nextProfile is the profile of the next turn.
func (i *identity) nextProfile() (string, error) {
	return i.profiles.pick(i.config().ID, i.device, i.named)
}

// profile is the profile of an event: that of the running turn, or of the turn that the event begins.
func (i *identity) profile(t *turn) string {
	if t == nil {
		name, _ := i.nextProfile() // an impossible one was rejected before
		return name
	}
	if t.profile != "" {
		return t.profile
	}
	return i.named
}

// interrupts returns the frames that stop the turn that runs, which may be nil. There is one for each
// name that the session may have: a wrong one is ignored (doc/hermes/relay.md §6).
func (i *identity) interrupts(t *turn) (frames [][]byte) {
	for _, name := range i.traits.sessionNames() {
		key := "agent:" + namespace(i.profile(t)) + ":" + name + ":dm:" + i.device
		frames = append(frames, encode(interruptFrame{Type: "interrupt_inbound", SessionKey: key, ChatID: i.device}))
	}
	return frames
}

// restore completes what is known from the state of a card, after a restart.
func (i *identity) restore(st cardState) {
	if i.person == (person{}) {
		i.person = person{device: st.Name, user: st.User, userName: st.UserName}
	}
	if i.named == "" {
		i.named = st.Profile
	}
}
