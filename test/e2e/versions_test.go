package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/gateway"
	"hermes-mobile/test/hermes"
)

var update = flag.Bool("update", false, "write the column of each version in the table of doc/gateway.md anew")

// probe is a row of the table of doc/gateway.md: what a real gateway does, as a word.
type probe struct {
	row  string
	look func(p *prober) string
}

// prober tries things at one gateway.
type prober struct {
	t      *testing.T
	api    caller
	client *gateway.Client
}

var probes = []probe{
	{"A message as text is a turn of the kind", func(p *prober) string { turn, _ := p.turn("FM:text(x)"); return string(turn.Mode()) }},
	{"A message with an image is a turn of the kind", func(p *prober) string { turn, _ := p.image("FM:text(x)"); return string(turn.Mode()) }},
	{"The reply is streamed", func(p *prober) string {
		_, events := p.turn("FM:long(900)")
		return yes(count[gateway.Delta](events) > 1)
	}},
	{"Tools are shown, with their result", func(p *prober) string {
		_, events := p.turn("FM:exec(echo shown)")
		told := slices.ContainsFunc(events, func(e gateway.Event) bool { t, is := e.(gateway.ToolEnded); return is && t.Preview != "" })
		if count[gateway.ToolStarted](events) > 0 && !told {
			return "without it"
		}
		return yes(told)
	}},
	{"A command is asked for, in a text turn", func(p *prober) string {
		_, events := p.turn("FM:exec(rm -rf " + p.t.TempDir() + ")")
		return yes(count[gateway.ApprovalRequested](events) > 0)
	}},
	{"A command is asked for, in a turn with an image", func(p *prober) string {
		_, events := p.image("FM:exec(rm -rf " + p.t.TempDir() + ")")
		return yes(count[gateway.ApprovalRequested](events) > 0)
	}},
	{"A text turn can be stopped", func(p *prober) string { return p.stop(nil) }},
	{"A turn with an image can be stopped", func(p *prober) string { return p.stop([]gateway.Image{p.picture()}) }},
	{"A start that is repeated with its key is the same run", func(p *prober) string {
		first, second := p.start("same-key"), p.start("same-key")
		return yes(first == second)
	}},
	{"The same key with other contents is refused", func(p *prober) string {
		p.start("one-key")
		status, _ := p.keyed("one-key", "FM:text(other)")
		return yes(status == http.StatusConflict)
	}},
	{"Who comes back to a run hears its events again", func(p *prober) string {
		turn, _ := p.turn("FM:long(900)")
		again, err := p.client.ResumeTurn(p.t.Context(), turn.Handle(), "")
		if err != nil {
			p.t.Fatal(err)
		}
		return yes(count[gateway.Delta](p.read(again)) > 1)
	}},
	{"Who comes back to a run hears how it ended", func(p *prober) string {
		turn, _ := p.turn("FM:text(whole)")
		again, err := p.client.ResumeTurn(p.t.Context(), turn.Handle(), "")
		if err != nil {
			p.t.Fatal(err)
		}
		events := p.read(again)
		o := events[len(events)-1].(gateway.Ended).Outcome
		return yes(o.State == gateway.Completed && o.Text() == "whole")
	}},
	{"A model that fails is told as that", func(p *prober) string {
		_, events := p.turn("FM:status(400)")
		return yes(events[len(events)-1].(gateway.Ended).Outcome.State == gateway.Failed)
	}},
	{"A turn that runs can be told more (steer)", func(p *prober) string { return p.offers("run_steer") }},
	{"Models of the providers can be listed and chosen", func(p *prober) string {
		_, err := p.client.Models.Options(p.t.Context(), gateway.ModelOptionsQuery{})
		return yes(err == nil)
	}},
	{"Sessions can be named, copied and deleted", func(p *prober) string {
		ctx, id := p.t.Context(), p.session()
		_, named := p.client.Sessions.Rename(ctx, id, "named "+id)
		fork, copied := p.client.Sessions.Fork(ctx, id, gateway.SessionParams{})
		return yes(named == nil && copied == nil && p.client.Sessions.Delete(ctx, fork.ID) == nil)
	}},
	{"A long history comes in pages", func(p *prober) string {
		_, paged := p.api.must("GET", "/api/sessions/"+p.session()+"/messages?limit=1", "")["pagination"]
		return yes(paged)
	}},
	{"Scheduled jobs are advertised", func(p *prober) string { return p.offersJobs() }},
	{"Scheduled jobs work where you allow them (`MOBILE_API_JOBS=on`)", func(p *prober) string {
		_, err := p.client.Jobs.List(p.t.Context())
		return yes(err == nil)
	}},
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func count[T gateway.Event](events []gateway.Event) (n int) {
	for _, e := range events {
		if _, is := e.(T); is {
			n++
		}
	}
	return n
}

func (p *prober) picture() gateway.Image {
	return gateway.Image{MIMEType: "image/png", Data: onePixel(p.t)}
}

func (p *prober) session() string {
	p.t.Helper()
	s, err := p.client.Sessions.Create(p.t.Context(), gateway.SessionParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	return s.ID
}

func (p *prober) begin(text string, images []gateway.Image) *gateway.Turn {
	p.t.Helper()
	req := gateway.TurnRequest{SessionID: p.session(), Text: text, Images: images}
	var turn *gateway.Turn
	await(p.t, "room for a turn", func() bool {
		var err error
		turn, err = p.client.StartTurn(p.t.Context(), req)
		var refused *gateway.Error
		if err != nil && !(errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests) {
			p.t.Fatal(err)
		}
		return err == nil
	})
	p.t.Cleanup(turn.Close)
	return turn
}

// read follows a turn to its end, and denies what it asks for.
func (p *prober) read(turn *gateway.Turn) (events []gateway.Event) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for e, err := range turn.Events(ctx) {
		if err != nil {
			p.t.Fatal(err)
		}
		if a, is := e.(gateway.ApprovalRequested); is {
			if err := turn.Answer(ctx, gateway.ApprovalAnswer{RequestID: a.Approval.ID, Choice: "deny"}); err != nil {
				p.t.Error(err)
			}
		}
		events = append(events, e)
	}
	return events
}

func (p *prober) turn(text string) (*gateway.Turn, []gateway.Event) {
	p.t.Helper()
	turn := p.begin(text, nil)
	return turn, p.read(turn)
}

func (p *prober) image(text string) (*gateway.Turn, []gateway.Event) {
	p.t.Helper()
	turn := p.begin(text, []gateway.Image{p.picture()})
	return turn, p.read(turn)
}

// stop tries to stop a turn of four seconds as soon as it speaks.
func (p *prober) stop(images []gateway.Image) string {
	p.t.Helper()
	turn := p.begin("FM:slow(4)", images)
	refused := false
	for e, err := range turn.Events(p.t.Context()) {
		if err != nil {
			p.t.Fatal(err)
		}
		switch e := e.(type) {
		case gateway.Delta:
			if err := turn.Stop(p.t.Context()); err != nil && !errors.Is(err, gateway.ErrUnavailable) {
				p.t.Fatal(err)
			} else if err != nil {
				refused = true
			}
		case gateway.Ended:
			return yes(!refused && e.Outcome.State == gateway.Cancelled)
		}
	}
	return "no"
}

func (p *prober) offers(operation string) string {
	caps, err := p.client.Capabilities(p.t.Context())
	return yes(err == nil && caps.Offers(operation))
}

func (p *prober) offersJobs() string {
	caps, err := p.client.Capabilities(p.t.Context())
	return yes(err == nil && caps.AdvertisesJobs())
}

func (p *prober) keyed(key, text string) (status int, run string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "POST", p.api.base+"/v1/runs", strings.NewReader(fmt.Sprintf(`{"input":%q}`, text)))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.api.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return p.api.do(r)
}

func (p *prober) start(key string) (run string) {
	p.t.Helper()
	await(p.t, "room for a run", func() bool {
		status := 0
		if status, run = p.keyed(key, "FM:text(keyed)"); status != http.StatusAccepted && status != http.StatusTooManyRequests {
			p.t.Fatalf("a run is answered with %d", status)
		}
		return status == http.StatusAccepted
	})
	return run
}

// writing keeps the versions from writing the document at once.
var writing sync.Mutex

// troubleVersions tries what the table of doc/gateway.md says of this version.
func troubleVersions(t *testing.T, w *world) {
	api := w.gateway.API()
	client, err := gateway.New(gateway.Profile{ID: "p", Name: "p", Remote: api.URL, Auth: gateway.AuthBearer, Jobs: gateway.JobsOn}, gateway.Credentials{Token: gateway.NewSecret(api.Key)}, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := &prober{t: t, api: caller{t, api.URL, api.Key, nil}, client: client}
	found := map[string]string{}
	for _, probe := range probes {
		found[probe.row] = probe.look(p)
	}
	writing.Lock()
	defer writing.Unlock()
	path := filepath.Join("..", "..", "doc", "gateway.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- table: versions -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("doc/gateway.md has no table of versions")
	}
	column := 1 + slices.Index(hermes.Versions, w.version)
	says := map[string][]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); len(cells) == 3 {
			says[cells[0]] = cells
		}
	}
	var next strings.Builder
	fmt.Fprintf(&next, "| With Hermes | %s | %s |\n|---|---|---|\n", hermes.Versions[0], hermes.Versions[1])
	for _, probe := range probes {
		cells := says[probe.row]
		if len(cells) != 3 {
			cells = []string{probe.row, "?", "?"}
		}
		if cells[column] != found[probe.row] && !*update {
			t.Errorf("%s: the table of doc/gateway.md says %q, and it is %q", probe.row, cells[column], found[probe.row])
		}
		cells[column] = found[probe.row]
		fmt.Fprintf(&next, "| %s |\n", strings.Join(cells, " | "))
	}
	switch {
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+next.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case next.String() != table:
		t.Error("doc/gateway.md: the rows of the table of versions are not what is tried; write it anew with -update")
	}
}
