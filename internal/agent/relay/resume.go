package relay

import (
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

// A gateway whose process was killed in the middle of a turn goes on with it by itself when it is back, and says its reply
// from the beginning. What the phone has of that reply continues under its id, and never gets shorter: nothing of the new
// text is shown before it has come as far as the old one had. Where it turns out to be another text, the old one is ended as
// it is, and the new one is a message of its own.

// before reports whether a stream was begun on an earlier connection, and marks it as resumed then.
func (g *gateway) before(s *stream) bool {
	if !s.resumed && s.begun && !s.last.IsZero() && s.last.Before(g.helloAt) {
		s.resumed = true
	}
	return s.resumed
}

// resuming reports whether a turn of an earlier connection, in the middle of a reply, may still be taken up by a gateway that starts.
func (g *gateway) resuming(c *convo, t *turn, now time.Time) bool {
	if t.handed || now.Sub(g.helloAt) > startupGrace {
		return false
	}
	for _, s := range c.streams {
		if s.replyID == t.mid && s.begun {
			return true
		}
	}
	return false
}

// restarted reports whether what answers a message is said by a later process than the one that began it: that names no message.
func (g *gateway) restarted(c *convo, replyID string) bool {
	t := c.turnOf(replyID)
	return t != nil && t.unnamed
}

// follows reports whether a text goes on from what was shown of a resumed message.
func (s *stream) follows(text string) bool {
	return strings.HasPrefix(endText(text), strings.TrimRight(s.shown, " \r\n"))
}

// diverge ends what was shown of a resumed message where its newest text is another one, which gets an id of its own.
func (g *gateway) diverge(c *convo, s *stream) []agent.Event {
	text := interimText(s.text)
	if !s.resumed || s.follows(text) || strings.HasPrefix(s.shown, text) {
		return nil
	}
	e := g.cutOff(c, s)
	s.id, s.begun, s.shown, s.resumed = agent.NewID(), false, "", false
	return []agent.Event{e}
}

// cutOff ends a resumed message with what was shown of it.
func (g *gateway) cutOff(c *convo, s *stream) agent.Event {
	say := g.say(c.turnOf(s.replyID), s.id, s.shown)
	say.Final, say.Interrupted = true, true
	return say
}

// resumeSign is how long after its hello a gateway that was stopped in mid-turn is given to show, by typing, that it resumes the
// turn. It says hello before it looks for turns to resume, and on a busy machine more than ten seconds passed between the two.
// An event that reaches it earlier is answered by the resumed turn.
const resumeSign = 30 * time.Second

// cutBefore is how long before it says that it stops a gateway may have ended a turn because of that.
const cutBefore = 10 * time.Second

// mayResume reports whether the gateway may be about to resume the turn of c that it cut when it stopped, or is at it: it has
// typed, and neither sent the end of that turn nor stopped typing for longer than a busy machine explains.
func (g *gateway) mayResume(c *convo) bool {
	if c.cut && g.resumes(c) {
		c.cut = g.a.now().Sub(c.stray) < typingGone
	} else if c.cut {
		c.cut = g.a.now().Sub(g.helloAt) <= resumeSign
	}
	return c.cut
}

// resumes reports whether the gateway has typed in c since its hello, for no turn of ours.
func (g *gateway) resumes(c *convo) bool { return c.stray.After(g.helloAt) }

// resumed notes that the turn that the gateway resumed in c is over. It holds the session for a moment still, as after any turn.
func (g *gateway) resumed(c *convo) {
	c.cut, c.ended, c.pongs = false, g.a.now(), g.pongs
	c.restFrom = c.ended
}
