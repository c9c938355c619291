package relay

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/quota"
)

const (
	mediaPath = "/relay/media"
	maxUpload = 64 << 20
)

// File addresses. A token is what media.Signer makes: it carries hash, name,
// type and expiry, and in the place of the device the direction, the size and
// the gateway, to which it is bound. So nothing is kept in memory, tokens outlive
// a restart for an hour, and a token of one gateway is worth nothing to another.
const (
	tokenUp   = "up:"   // from the agent, for send_media
	tokenDown = "down:" // to the agent, for GET
)

func (a *Agent) token(direction, gateway string, f *agent.File) string {
	owner := direction + strconv.FormatInt(f.Size, 10) + ":" + gateway
	path := a.signer.Sign(owner, f.Hash, f.Name, f.Mime, a.now().Add(mediaLife))
	return strings.TrimPrefix(path, media.LinkPrefix)
}

// openToken reads a token of the given direction, and returns its file and the gateway that it is for.
func (a *Agent) openToken(direction, token string) (f agent.File, gateway string, err error) {
	l, err := a.signer.Verify(media.LinkPrefix+token, "", a.now())
	if err != nil {
		return agent.File{}, "", err
	}
	rest, right := strings.CutPrefix(l.Device, direction)
	sizeText, gateway, ok := strings.Cut(rest, ":")
	size, err := strconv.ParseInt(sizeText, 10, 64)
	if !right || !ok || err != nil {
		return agent.File{}, "", media.ErrLink
	}
	return agent.File{Hash: l.Hash, Name: l.Filename, Mime: l.Mime, Size: size}, gateway, nil
}

// fileDown returns path and query of a file for a gateway.
func (a *Agent) fileDown(gateway string, f *agent.File) string {
	return mediaPath + "/" + a.token(tokenDown, gateway, f)
}

// Handler serves /relay and everything below it.
func (a *Agent) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimSuffix(r.URL.Path, "/"); {
		case path == "/relay":
			a.upgrade(w, r)
		case path == mediaPath:
			a.upload(w, r)
		case strings.HasPrefix(r.URL.Path, mediaPath+"/"):
			a.download(w, r, strings.TrimPrefix(r.URL.Path, mediaPath+"/"))
		case path == "/relay/policy":
			if a.allow(w, r, http.MethodPost) && a.authorize(w, r) != nil {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, "{}")
			}
		default: // provision, too: gateways are configured by the owner
			http.Error(w, "not found", http.StatusNotFound)
		}
	})
}

func (a *Agent) allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	for _, m := range methods {
		if r.Method == m {
			return true
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	return false
}

// upload takes a file of the agent (relay-facts §5). It is held until a
// send_media names it.
func (a *Agent) upload(w http.ResponseWriter, r *http.Request) {
	if !a.allow(w, r, http.MethodPost) {
		return
	}
	g := a.authorize(w, r)
	if g == nil {
		return
	}
	if r.ContentLength > maxUpload {
		http.Error(w, "file too large", http.StatusRequestEntityTooLarge)
		return
	}
	mimeType := "application/octet-stream"
	if m, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil {
		mimeType = m
	}
	body := http.MaxBytesReader(w, r.Body, maxUpload)
	hash, size, err := a.files.Put(body, maxUpload)
	if err != nil {
		g.log.Warn("relay: a file of the agent could not be stored", "err", err)
		status, text := http.StatusInternalServerError, "cannot be stored"
		var over *http.MaxBytesError
		var big *media.Refusal
		switch {
		case errors.As(err, &over), errors.As(err, &big) && big.TooBig:
			status = http.StatusRequestEntityTooLarge
		case quota.Why(err) != "":
			status, text = http.StatusInsufficientStorage, noRoom(err)
		}
		http.Error(w, text, status)
		return
	}
	id := a.token(tokenUp, g.config().ID, &agent.File{
		Hash: hash, Size: size, Mime: mimeType, Name: headerName(r.Header.Get("X-Media-Filename")),
	})
	if id == "" {
		http.Error(w, "cannot be stored", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"%s","size":%d}`, id, size)
}

// noRoom says why a file was not stored for want of room.
func noRoom(err error) string {
	full := &quota.Full{Reason: quota.Disk} // where it is the system that says so
	errors.As(err, &full)
	return full.Error()
}

// headerName reads a file name out of a header: UTF-8, or Latin-1 as Python's
// HTTP client writes it.
func headerName(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// download gives a user's file to the gateway that was told of it. Newer gateways send their bearer only to the address that they
// dialled, so behind a proxy or under another name they come without one: the signed address, which nobody else was told, is enough
// then. A bearer that is wrong, or another gateway's, is not.
func (a *Agent) download(w http.ResponseWriter, r *http.Request, token string) {
	if !a.allow(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	l, owner, err := a.openToken(tokenDown, token)
	g := a.routes.Load().byID[owner]
	if len(r.Header.Values("Authorization")) > 0 || err != nil {
		if g = a.authorize(w, r); g == nil {
			return
		}
	}
	if err != nil || g == nil || g.config().ID != owner {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	f, err := a.files.Open(l.Hash)
	if err != nil {
		g.log.Warn("relay: a file for the gateway is gone", "err", err)
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", l.Mime)
	// The gateway takes all that follows filename= as the name, for its
	// extension: nothing may come after it.
	w.Header().Set("Content-Disposition", `attachment; filename="`+asciiName(l.Name)+`"`)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, f)
}

func asciiName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, s)
}

// opMedia takes a file of the agent: one that was uploaded here, or a public
// address, which is passed on as a link and never fetched by us.
func (g *gateway) opMedia(c *convo, a *action) {
	replyID := a.replyID()
	t := c.turnOf(replyID)
	cron := a.Metadata.JobID != ""
	if t == nil && !cron {
		t = c.turn // files follow their turn's text and answer nothing (recording 20)
	}
	if cron {
		t = nil
	}
	if t != nil {
		g.alive(t)
		t.content = true
	}
	c.plainLast = time.Time{}
	source, job := "", ""
	caption := string(a.Content)
	if cron {
		source = "cron"
		job, caption = unwrapCron(caption, string(a.Metadata.JobID))
	}
	id := agent.NewID()
	u, err := url.Parse(string(a.SourceURL))
	if err != nil {
		g.fail(a, "not an address")
		return
	}
	if i := strings.LastIndex(u.Path, mediaPath+"/"); i >= 0 {
		f, owner, err := g.a.openToken(tokenUp, u.Path[i+len(mediaPath)+1:])
		if err != nil || owner != g.config().ID {
			g.fail(a, "no such file, or it is older than an hour")
			return
		}
		f.Kind = mediaKind(string(a.MediaKind))
		if a.Filename != "" {
			f.Name = media.CleanName(string(a.Filename))
		}
		send := agent.SendFile{ID: id, File: f, Caption: caption, Source: source, Job: job}
		if t != nil {
			send.ReplyTo, send.N = t.inputID, t.n
		}
		g.store(c.device, a.bytes, g.settle(a, id), send)
		return
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		g.fail(a, "not a public address")
		return
	}
	say := g.say(t, id, strings.TrimSpace(caption+"\n"+u.String()))
	say.Final, say.Source, say.Job = true, source, job
	g.store(c.device, a.bytes, g.settle(a, id), say)
}

func mediaKind(kind string) string {
	switch kind {
	case "image", "voice", "video", "document", "animation", "audio":
		return kind
	}
	return "document"
}
