package relay

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/go-json-experiment/json"

	"hermes-mobile/internal/agent"
)

const (
	// cardPrefix begins the message_id of a prompt; the card's id follows. So an
	// edit that closes it is known after a restart of ours, too.
	cardPrefix = "card-"
	// receiptWithin is how long after its receipt frame a card's answer may be
	// confirmed by a message.
	receiptWithin = 3 * time.Second
	// receiptEarly is how long after an answer was written its confirmation may
	// come without the receipt frame, should it ever overtake it.
	receiptEarly = 250 * time.Millisecond
	maxOptions   = 64
	// skipWord is what a newer gateway takes, in any language, as "I do not
	// answer" to a question (a constant of its source).
	skipWord = "skip"
)

// cardState is Card.State: what is needed to answer after a restart.
type cardState struct {
	Gateway  string `json:"g"`
	Chat     string `json:"c"`
	Prompt   string `json:"p"`
	Nonce    string `json:"n"`
	Kind     string `json:"k"`
	User     string `json:"u"`
	UserName string `json:"un"`
	Name     string `json:"dn"`
	Profile  string `json:"pr,omitzero"`
}

func parseCardState(b []byte) (st cardState, err error) {
	if err = json.Unmarshal(b, &st); err == nil && (st.Gateway == "" || st.Chat == "") {
		err = errors.New("relay: not a card of a gateway")
	}
	return st, err
}

// nonceOf is the part of a prompt id that names the gateway's process
// (relay-facts §5).
func nonceOf(promptID string) string {
	nonce, _, ok := strings.Cut(promptID, ".")
	if !ok {
		return ""
	}
	return nonce
}

// stale reports whether prompts with this nonce are those of a process that is
// gone.
func (g *gateway) stale(nonce string) bool {
	return nonce != "" && (g.nonce != "" && nonce != g.nonce || nonce == g.dead)
}

// opPrompt shows a card (relay-facts §5). Its id is ours, whatever the
// gateway's is: that may be empty or come twice.
func (g *gateway) opPrompt(c *convo, a *action) {
	card := agent.Card{ID: agent.NewID(), Text: string(a.Content), Kind: string(a.PromptKind), Life: a.life()}
	seen := map[string]bool{}
	for _, o := range a.Options {
		if o.ID == "" || seen[string(o.ID)] || len(card.Options) == maxOptions {
			continue
		}
		seen[string(o.ID)] = true
		opt := agent.Option{ID: string(o.ID), Label: string(o.Label)}
		if opt.Label == "" || rawKey(opt.Label) {
			opt.Label = plainLabel(opt.ID)
		}
		if o.Style == "primary" || o.Style == "danger" {
			opt.Style = string(o.Style)
		}
		card.Options = append(card.Options, opt)
	}
	if len(card.Options) == 0 {
		g.fail(a, "a prompt without options") // the gateway asks in words then
		return
	}
	switch {
	case card.Kind == "clarify":
	case seen["deny"]:
		card.Kind = "exec_approval"
	case seen["cancel"]:
		card.Kind = "slash_confirm"
	}
	if card.Kind == "exec_approval" {
		card.Command, card.Description = splitApproval(card.Text)
	}
	card.Text = cardText(card)
	if card.Cut = cutShort(card.Command); card.Cut {
		card.Text += "\n\nHermes sent only the beginning of this command. What comes after the dots at its end is not known here, and runs too if you allow it."
	}
	nonce := nonceOf(string(a.PromptID))
	if nonce != "" && nonce != g.nonce {
		old := g.nonce
		g.nonce = nonce
		if old != "" {
			g.dead = old
			g.expireCards(nonce)
		}
	}
	g.checkStored(c)
	if c.turn != nil {
		g.alive(c.turn)
		c.turn.content = true
		card.N = c.turn.n
	}
	c.plainLast = time.Time{}
	st := cardState{
		Gateway: g.config().ID, Chat: c.device, Prompt: string(a.PromptID), Nonce: nonce, Kind: card.Kind,
		User: c.who.user, UserName: c.who.userName, Name: c.who.device, Profile: g.speaksTo(c),
	}
	card.State = encode(st)
	c.cards[card.ID] = nonce
	c.turn.waitsFor(card.ID, card.Kind)
	done := g.settle(a, cardPrefix+card.ID)
	g.store(c.device, a.bytes, func(err error) {
		if err != nil {
			delete(c.cards, card.ID)
		}
		done(err)
	}, agent.Ask{Card: card})
}

// life is how long the gateway waits for the answer to a prompt, where it says so; 0 where it does not.
func (a *action) life() time.Duration {
	seconds, err := strconv.ParseFloat(string(a.Timeout), 64)
	if err != nil || !(seconds > 0) || seconds > 365*24*3600 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// splitApproval takes the command and the reason out of an approval's text: the
// command is the fenced block, the reason is what follows, until a blank line.
// The words around them are translated, or raw keys (relay-facts), and are left
// out where that can be told by shape.
func splitApproval(text string) (command, reason string) {
	_, rest, ok := strings.Cut(text, "```")
	if !ok {
		return "", ""
	}
	i := strings.LastIndex(rest, "```")
	if i < 0 {
		return "", ""
	}
	block, after := rest[:i], rest[i+3:]
	if first, body, ok := strings.Cut(block, "\n"); ok && !strings.Contains(first, " ") {
		block = body // the line of the fence, perhaps with a language
	}
	after = strings.TrimSpace(after)
	reason, _, _ = strings.Cut(after, "\n\n")
	if label, words, ok := strings.Cut(reason, ": "); ok && !strings.ContainsAny(label, " \n") {
		reason = words
	}
	return strings.Trim(block, "\r\n"), strings.TrimSpace(reason)
}

// commandBudget is how much of a command a gateway puts on a card, in UTF-16 units or in characters. Where it cuts, it adds
// three dots.
const commandBudget = 1500

// cutShort reports whether a command looks as if the gateway had cut it.
func cutShort(command string) bool {
	return strings.HasSuffix(command, "...") && len(utf16.Encode([]rune(command))) >= commandBudget
}

// waitsFor notes that a turn cannot go on before the card is answered, so that the card is over with the turn: nothing
// else tells when the turn is stopped, or its process dies. The card of a command outlives its turn.
func (t *turn) waitsFor(card, kind string) {
	if t != nil && (kind == "exec_approval" || kind == "clarify") {
		t.asked = append(t.asked, card)
	}
}

// rawKey reports whether a text is the name of a translation instead of one: a gateway without its translations says
// "gateway.exec_approval.action_once" where it means "Allow once".
func rawKey(s string) bool {
	dots := 0
	for i, r := range s {
		switch {
		case r == '.':
			dots++
		case r != '_' && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9'):
			return false
		}
	}
	return dots > 0
}

// plainLabel is what an option is called where the gateway has no name for it. The ids are those of relay-facts §5.
func plainLabel(id string) string {
	switch id {
	case "once":
		return "Yes, this once"
	case "session":
		return "Yes, for this session"
	case "always":
		return "Yes, always"
	case "deny":
		return "No"
	case "cancel":
		return "Cancel"
	case "other":
		return "Something else"
	}
	return id
}

// cardText is the question without what the card shows elsewhere: of an approval what stands before the command, of any
// card no line that is only the name of a translation.
func cardText(card agent.Card) string {
	text := card.Text
	if card.Command != "" {
		text, _, _ = strings.Cut(text, "```")
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || !rawKey(words[len(words)-1]) || len(words) > 2 {
			lines = append(lines, line)
		}
	}
	if text = strings.TrimSpace(strings.Join(lines, "\n")); text != "" {
		return text
	}
	if card.Command != "" {
		return "May I run this command?"
	}
	return strings.TrimSpace(card.Text)
}

// cardGone notes that a card is not open any more.
func (g *gateway) cardGone(c *convo, id string) {
	delete(c.cards, id)
	if c.turn != nil {
		c.turn.sign = g.a.now()
	}
}

// expireCards closes the open cards of processes other than keep.
func (g *gateway) expireCards(keep string) {
	for _, c := range g.convos {
		for id, nonce := range c.cards {
			if nonce != keep || keep == "" {
				delete(c.cards, id)
				g.post(c.device, agent.CloseCard{ID: id, Expired: true})
			}
		}
		c.checked = false
		if keep == "" {
			g.checkStored(c)
		}
	}
}

// checkStored closes cards of an earlier process that were stored in an earlier
// life of ours, once it is known which process runs.
func (g *gateway) checkStored(c *convo) {
	if c.checked {
		return
	}
	c.checked = true
	host := g.a.getHost()
	id := g.config().ID
	g.a.goDo(func(ctx context.Context) {
		cards, err := host.OpenCards(ctx, c.device)
		if err != nil {
			return
		}
		g.do(func() {
			for _, card := range cards {
				st, err := parseCardState(card.State)
				if err != nil || st.Gateway != id || !g.stale(st.Nonce) {
					continue
				}
				g.cardGone(c, card.ID)
				g.post(c.device, agent.CloseCard{ID: card.ID, Expired: true})
			}
		})
	})
}

// answerCard tells the gateway how a card was decided: by a prompt_response, and
// own words after it as a plain event (relay-facts §5). The ids follow from the
// card's, so that telling it again changes nothing.
func (g *gateway) answerCard(card agent.Card, st cardState, answer agent.Answer, taken func(error)) {
	g.do(func() {
		tell := func(err error) { g.later(func() { taken(err) }) }
		c := g.convo(st.Chat)
		if c == nil || !g.online() {
			tell(agent.ErrAway)
			return
		}
		if g.stale(st.Nonce) {
			g.cardGone(c, card.ID)
			tell(nil) // its process is gone, nobody waits
			return
		}
		if c.who == (person{}) {
			c.who = person{device: st.Name, user: st.User, userName: st.UserName}
		}
		if c.profile == "" {
			c.profile = st.Profile
		}
		option, words := answer.OptionID, ""
		if option == "other" && st.Kind == "clarify" {
			words = answer.Text
		}
		if n := choiceNumber(option); n > 0 && st.Kind == "clarify" && st.Nonce == "" && c.turn != nil {
			// 0.20.0 answers a press from within its reader, which is stuck for 30 s then (relay-facts §7); the number of a choice it only reads.
			g.sendAnswer(c, card.ID, g.event(c, strconv.Itoa(n), "text", "w"+card.ID+"-"+g.a.opt.Instance), nil, tell, func() {
				g.cardGone(c, card.ID)
				tell(nil)
			})
			return
		}
		skip := false
		if option == "" {
			if st.Kind != "clarify" || !hasOption(card, "other") || c.turn == nil {
				g.cardGone(c, card.ID)
				tell(nil)
				return
			}
			option, words, skip = "other", skipWord, true
		}
		press := g.event(c, "/"+option, "command", "c"+card.ID+"-"+g.a.opt.Instance)
		if st.Profile != "" { // that asked, whatever was chosen since
			press.Source.Profile = st.Profile
		}
		press.PromptResponse = &promptResponse{PromptID: st.Prompt, OptionID: option, PromptMessageID: cardPrefix + card.ID}
		sure := st.Nonce != "" && st.Nonce == g.nonce && !skip
		wrote := func() {
			c.receipts, c.receiptBy = 1, g.a.now().Add(receiptEarly)
		}
		g.sendAnswer(c, card.ID, press, wrote, tell, func() {
			g.cardGone(c, card.ID)
			c.receiptBy = g.a.now().Add(receiptWithin)
			g.active[c] = struct{}{}
			if words == "" {
				tell(nil)
				return
			}
			// The words would be a message of their own if the prompt were not
			// known to the gateway any more. It is known to be if it is one of
			// its process now, or when the press was confirmed.
			say := func() {
				if skip && c.turn == nil {
					tell(nil)
					return
				}
				refused := tell
				if !g.version.dropsRepeats() { // told again, the press would go first, which it must not
					refused = func(error) {
						g.tellDoubt(c, c.turn, answerInDoubt)
						tell(nil)
					}
				}
				ev := g.event(c, words, "text", "w"+card.ID+"-"+g.a.opt.Instance)
				ev.Source.Profile = press.Source.Profile
				g.sendAnswer(c, card.ID, ev, nil, refused, func() { tell(nil) })
			}
			if sure {
				say()
				return
			}
			c.onReceipt = func(confirmed bool) {
				if confirmed {
					say()
				} else {
					tell(nil)
				}
			}
		})
	})
}

// sendAnswer queues an event that belongs to a card.
func (g *gateway) sendAnswer(c *convo, card string, ev event, wrote func(), tell func(error), acked func()) {
	it := &item{id: ev.MessageID, device: c.device, wrote: wrote, acked: acked, refused: tell, given: agent.Given{Card: card}}
	it.lost = func() {
		g.cardGone(c, card)
		tell(nil)
		if c.turn != nil {
			c.turn.doubt, c.turn.sign = answerInDoubt, g.a.now()
		} else {
			g.tellDoubt(c, nil, answerInDoubt)
		}
	}
	it.frame = encode(inboundFrame{Type: "inbound", BufferID: it.id, Event: ev})
	if len(it.frame) > maxFrame {
		tell(errTooLong)
		return
	}
	g.enqueue(it)
}

// choiceNumber is the place of a clarify card's choice in its list, from 1 on, 0 where an option is no choice.
func choiceNumber(option string) int {
	digits, ok := strings.CutPrefix(option, "c")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n >= maxOptions {
		return 0
	}
	return n + 1
}

func hasOption(card agent.Card, id string) bool {
	for _, o := range card.Options {
		if o.ID == id {
			return true
		}
	}
	return false
}

// swallow answers a send, and reports true, when it is only the confirmation of a card's answer:
// "✅ Approved once", "✏️ Type your answer:". It says nothing that prompt_done
// does not. The words cannot be matched, so the place is: the gateway starts to
// send it while it handles the event (recordings 00, 04, 09, 10 and its source),
// so it is the first plain send after we wrote the answer, and comes within
// milliseconds of the acknowledgement. Exactly one is left out an answer;
// the second one after a confirmation of /new, which has the outcome, is shown.
func (g *gateway) swallow(c *convo, a *action) bool {
	if !a.plain() || isRecovered(string(a.Content)) || len(strings.TrimSpace(string(a.Content))) > 200 {
		return false
	}
	if c.receipts == 0 || g.a.now().After(c.receiptBy) {
		c.receipts = 0
		return false
	}
	c.receipts--
	if c.turn != nil {
		c.turn.sign = g.a.now()
	}
	g.answer(a.requestID, result{Success: true, MessageID: agent.NewID()})
	if then := c.onReceipt; then != nil {
		c.onReceipt = nil
		then(true)
	}
	return true
}
