package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/setup"
)

type setupFlags struct {
	profile, version, url, remote, service string
	yes, replace, print, undo, plugin, api bool
	wait                                   time.Duration
}

func setupCommand() *cobra.Command {
	var f setupFlags
	cmd := jsonFlag(&cobra.Command{
		Use:        "setup",
		SuggestFor: []string{"connect", "install", "init"},
		Short:      "Connect the Hermes on this machine to the server",
		Long: `Connect the Hermes on this machine to the server. The command shows the changes that config.yaml and
.env in the Hermes home need, asks you, and writes them. It keeps comments, order, all other keys, and
your other messengers. It backs up each file, and --undo reverts everything. You can run it again
safely.

Then the command waits for the gateway to connect, and shows a QR code to pair a phone. Set HERMES_HOME
to use another Hermes home.`,
		Example: `  hermes-mobile setup
  hermes-mobile setup --print
  hermes-mobile setup --yes --profile work
  hermes-mobile setup --service systemd-user
  sudo HERMES_HOME=/home/anna/.hermes hermes-mobile setup --service systemd
  hermes-mobile setup --api
  hermes-mobile setup --remote https://agent.example.com
  hermes-mobile setup --undo`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runSetup(cmd, f) },
	})
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVarP(&f.yes, "yes", "y", false, "write without asking")
	fl.BoolVar(&f.print, "print", false, "show the changes without writing them")
	fl.BoolVar(&f.undo, "undo", false, "revert the changes of earlier runs")
	fl.StringVar(&f.profile, "profile", "", "`name` of the Hermes profile")
	fl.StringVar(&f.version, "hermes-version", "", "`version` of Hermes, if the command can't detect it")
	fl.StringVar(&f.url, "url", "", "server `address` for the gateway (default: the running server on this machine)")
	fl.BoolVar(&f.replace, "replace", false, "with --yes, also replace the settings of another connector")
	fl.BoolVar(&f.plugin, "plugin", false, "install a plugin for /sethome and for jobs with \"deliver: mobile\" (Hermes 0.22 and newer)")
	fl.BoolVar(&f.api, "api", false, "enable Hermes' API server instead, for the agent \"direct\" and the API proxy")
	fl.StringVar(&f.service, "service", "", "run the server as a service of this `kind`: auto, systemd (as root, with its own account), systemd-user, launchd, or windows")
	fl.StringVar(&f.remote, "remote", "", "show what to paste on another machine with Hermes; `address` is this server's address as seen from there")
	fl.DurationVar(&f.wait, "wait", time.Minute, "how long to wait for the gateway (with --yes, no wait if it is not running)")
	_ = cmd.RegisterFlagCompletionFunc("service", cobra.FixedCompletions(append([]string{"auto"}, setup.Kinds...), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// setupResult is the JSON result.
type setupResult struct {
	Home      setup.Home         `json:"hermes_home"`
	Version   setup.Version      `json:"hermes_version"`
	URL       string             `json:"url"`
	Files     []setup.Shown      `json:"files"`
	Conflicts []string           `json:"conflicts,omitempty"`
	Notes     []string           `json:"notes,omitempty"`
	Written   bool               `json:"written"`
	Backups   []string           `json:"backups,omitempty"`
	Commands  []string           `json:"commands,omitempty"` // run to create the server's own account
	Steps     []string           `json:"steps,omitempty"`    // what the owner still has to do
	Connected bool               `json:"connected"`
	Pair      *server.Invitation `json:"pair,omitempty"`
	API       *setup.API         `json:"api,omitempty"` // with --api
}

// setupRun is one run of the command.
type setupRun struct {
	cmd    *cobra.Command
	f      setupFlags
	cfg    *config.Config
	out    io.Writer // for text; discards it with --json
	asJSON bool
	in     *bufio.Reader
	result setupResult
	port   int // agreed port of the server if the hermes-mobile plugin has the usual one; 0: use the settings
}

func runSetup(cmd *cobra.Command, f setupFlags) error {
	modes := 0
	for _, on := range []bool{f.print, f.undo, f.remote != ""} {
		if on {
			modes++
		}
	}
	if modes > 1 {
		return misuse(cmd, "--print, --undo, and --remote can't be combined")
	}
	if f.api && (f.remote != "" || f.url != "" || f.plugin || f.service != "" || f.replace) {
		return misuse(cmd, "--api can be combined only with --yes, --print, --undo, --profile, and --json")
	}
	if f.replace && !f.yes {
		return misuse(cmd, "--replace requires --yes")
	}
	if f.service != "" {
		f.service = setup.ServiceKind(f.service, os.Geteuid() == 0)
		if data := cmd.Flags().Lookup("data"); f.service == setup.Systemd && !data.Changed && os.Getenv("MOBILE_DATA") == "" {
			if err := cmd.Flags().Set("data", setup.ServerData); err != nil {
				return err
			}
		}
	}
	cfg, _, err := settings(cmd)
	if err != nil {
		return err
	}
	w := &setupRun{cmd: cmd, f: f, cfg: cfg, out: cmd.OutOrStdout(), in: bufio.NewReader(cmd.InOrStdin())}
	if w.asJSON, _ = cmd.Flags().GetBool("json"); w.asJSON {
		w.out = io.Discard
	}
	if f.remote != "" {
		return w.remote()
	}
	homes, err := setup.Homes(cfg.HermesHome)
	if err != nil {
		return hint(err, "install Hermes and start it once, set HERMES_HOME, or use --remote for Hermes on another machine"+sudoHome())
	}
	if err := w.chooseHome(homes); err != nil {
		return err
	}
	if f.undo {
		return w.undo()
	}
	if f.api {
		return w.api()
	}
	return w.run()
}

func (w *setupRun) say(format string, args ...any) {
	if rest, ok := strings.CutPrefix(format, "\n"); ok {
		fmt.Fprintln(w.out)
		format = rest
	}
	fmt.Fprintln(w.out, clean(fmt.Sprintf(format, args...)))
}

// chooseHome picks the profile from --profile, or asks if there are several.
func (w *setupRun) chooseHome(homes []setup.Home) (err error) {
	if w.f.profile != "" {
		w.result.Home, err = setup.Pick(homes, w.f.profile)
		return err
	}
	i := slices.IndexFunc(homes, func(h setup.Home) bool { return h.Active })
	w.result.Home = homes[i]
	if len(homes) == 1 {
		return nil
	}
	var names []string
	for _, h := range homes {
		names = append(names, h.Name())
	}
	if !w.asking() {
		w.result.Notes = append(w.result.Notes, fmt.Sprintf("Hermes has the profiles %s: using %s; choose another with --profile", strings.Join(names, ", "), homes[i].Name()))
		return nil
	}
	name, err := w.ask(fmt.Sprintf("Which Hermes profile: %s? [%s] ", strings.Join(names, ", "), homes[i].Name()))
	if err != nil {
		return err
	}
	w.result.Home, err = setup.Pick(homes, cmp.Or(name, homes[i].Name()))
	return err
}

// asking reports whether the command may ask the user.
func (w *setupRun) asking() bool {
	in, ok := w.cmd.InOrStdin().(*os.File)
	return ok && term.IsTerminal(in.Fd()) && !w.f.yes && !w.f.print && !w.asJSON
}

// ask reads a line. Ctrl-C ends the wait.
func (w *setupRun) ask(question string) (string, error) {
	fmt.Fprint(w.out, question)
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		text, err := w.in.ReadString('\n')
		read <- answer{strings.TrimSpace(text), err}
	}()
	select {
	case a := <-read:
		if a.err != nil && a.text == "" {
			return "", errors.New("no input: nothing was written")
		}
		return a.text, nil
	case <-w.cmd.Context().Done():
		fmt.Fprintln(w.out)
		return "", errors.New("stopped: nothing was written")
	}
}

func (w *setupRun) yes(question string) (bool, error) {
	text, err := w.ask(question + " [y/N] ")
	text = strings.ToLower(text)
	return text == "y" || text == "yes", err
}

// remote prints what to paste on another machine.
func (w *setupRun) remote() error {
	u, err := url.Parse(w.f.remote)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return misuse(w.cmd, "--remote %q: use the address of this server, such as https://agent.example.com", clean(w.f.remote))
	}
	if err := subPath(u); err != nil {
		return err
	}
	v, err := w.namedVersion()
	if err != nil {
		return err
	}
	id, secret, _, err := w.pair(true)
	if err != nil {
		return err
	}
	if u.Scheme == "http" || u.Scheme == "ws" {
		fmt.Fprintln(w.cmd.ErrOrStderr(), "warning: connections to this address are not encrypted: use https, with MOBILE_TLS or a TLS proxy")
	}
	var st server.Status
	if err := server.NewClient(w.cfg.Data).Get(w.cmd.Context(), "/status", &st); err == nil && !knows(st, id) {
		fmt.Fprintln(w.cmd.ErrOrStderr(), "warning: the running server does not know this gateway id yet: restart it")
	}
	text := setup.Remote(w.f.remote, id, secret, v)
	return show(w.cmd, map[string]string{"url": w.f.remote, "id": id, "secret": secret, "text": text}, func(out io.Writer) { fmt.Fprint(out, text) })
}

// subPath rejects an address with a path of its own: a gateway looks for files at /relay/media/ of the
// host, and newer ones send their credential nowhere else.
func subPath(u *url.URL) error {
	path := strings.Trim(u.Path, "/")
	if path == "" || path == "relay" {
		return nil
	}
	return &hinted{fmt.Errorf("the relay address can't have a path (/%s): files for the agent would not arrive", path),
		"give the server its own host name or port in the proxy, such as https://agent.example.com or https://example.com:8443"}
}

func (w *setupRun) namedVersion() (setup.Version, error) {
	if w.f.version == "" {
		return setup.Version{}, nil
	}
	v, ok := setup.ParseVersion(w.f.version)
	if !ok {
		return v, misuse(w.cmd, "--hermes-version %q: use a version such as 0.22.2", clean(w.f.version))
	}
	return v, nil
}

// pair returns the id and secret that the server accepts from the gateway, and all pairs that it accepts.
// It creates a pair only if make is set.
func (w *setupRun) pair(make bool) (id, secret string, accepted map[string]string, err error) {
	accepted = map[string]string{}
	for i, g := range w.cfg.Gateways {
		accepted[g.ID] = g.Secret.Reveal()
		if i == 0 || slices.Contains(g.Devices, "*") {
			id, secret = g.ID, g.Secret.Reveal()
		}
	}
	switch {
	case id != "":
		return id, secret, accepted, nil
	case make || server.HasOwnGateway(w.cfg.Data):
		id, secret, err = server.OwnGateway(w.cfg.Data)
		accepted[id] = secret
		return id, secret, accepted, err
	}
	return "<created on writing>", "", accepted, nil
}

// run shows the plan, asks, writes, waits for the gateway, and shows the QR code.
func (w *setupRun) run() error {
	v, err := w.namedVersion()
	if err != nil {
		return err
	}
	how := "--hermes-version"
	if w.f.version == "" {
		v, how = setup.FindVersion(w.cmd.Context(), w.result.Home.Path)
	}
	w.result.Version = v
	w.say("Hermes home     %s", w.result.Home.Path)
	w.say("Hermes version  %s (%s)", v, how)
	if v == (setup.Version{}) {
		w.result.Notes = append(w.result.Notes, "the version of Hermes is unknown ("+how+"), so streaming stays off to suit all versions; set it with --hermes-version")
	}
	if os.Getenv("GATEWAY_RELAY_URL") != "" {
		w.result.Notes = append(w.result.Notes, "GATEWAY_RELAY_URL is set in this environment: it makes Hermes 0.22 disable every other messenger; unset it")
	}
	if err := w.catalogPlugin(); err != nil {
		return err
	}
	if w.result.URL, err = w.address(); err != nil {
		return err
	}
	plan, err := w.plan(false)
	if err != nil {
		return err
	}
	w.say("Server          %s", plan.URL)
	if err := w.show(plan, "<secret> stands for the secret in relay.env of the data folder, or in the server's settings."); err != nil {
		return err
	}
	if w.f.print {
		w.showSteps()
		return w.end()
	}
	if !plan.Done() {
		if err := w.agree(plan); err != nil {
			return err
		}
		if err := plan.Apart.Prepare(w.cmd.Context()); err != nil {
			return hint(err, "nothing was written; "+byHand)
		}
		if plan, err = w.plan(true); err != nil {
			return err
		}
		if err := w.write(plan); err != nil {
			return err
		}
	}
	w.showSteps()
	return w.connect(plan)
}

// write writes the plan that the user agreed to.
func (w *setupRun) write(plan *setup.Plan) (err error) {
	plan.Replace = true
	if w.result.Backups, err = plan.Write(w.cfg.Data, time.Now()); err != nil {
		return hint(err, "compare with --print, or revert with --undo")
	}
	w.result.Written = true
	w.say("\nDone. To revert: %s setup --undo", program(w.cmd))
	for _, b := range w.result.Backups {
		w.say("  backup  %s", b)
	}
	return nil
}

// plan computes the changes. It creates secrets only if write is set.
func (w *setupRun) plan(write bool) (*setup.Plan, error) {
	id, secret, accepted, err := w.pair(write)
	if err != nil {
		return nil, err
	}
	p, err := setup.NewPlan(setup.Options{Home: w.result.Home, Version: w.result.Version, URL: w.result.URL, ID: id, Secret: secret, Accepted: accepted,
		Plugin: w.f.plugin})
	if err != nil {
		return nil, err
	}
	if w.f.service == "" {
		return p, nil
	}
	return p, w.service(p)
}

// address returns the server's address for a gateway on this machine.
func (w *setupRun) address() (string, error) {
	if w.f.url != "" {
		u, err := url.Parse(w.f.url)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) || strings.ContainsAny(w.f.url, "\"\\") {
			return "", misuse(w.cmd, "--url %q: use an address such as http://127.0.0.1:8787", clean(w.f.url))
		}
		return strings.TrimRight(w.f.url, "/"), subPath(u)
	}
	host, port := w.cfg.Host, strconv.Itoa(w.cfg.Port)
	var st server.Status
	if err := server.NewClient(w.cfg.Data).Get(w.cmd.Context(), "/status", &st); err == nil {
		if st.Local != "" {
			return st.Local, nil
		}
		if st.TLS.Mode != cert.Off {
			return "", &hinted{fmt.Errorf("a gateway on this machine can't reach the server: it listens on %s, and accepts plain HTTP on 127.0.0.1 only", st.Address),
				"set MOBILE_HOST=0.0.0.0, or pass --url with an address whose certificate Hermes trusts"}
		}
		u, err := url.Parse(st.Address)
		if err != nil {
			return "", err
		}
		host, port = u.Hostname(), u.Port()
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if port == "0" {
		return "", &hinted{errors.New("unknown port: MOBILE_PORT is 0 and the server is not running"), "start the server first, or set MOBILE_PORT"}
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// show prints the plan. It returns an error if setup cannot apply it.
func (w *setupRun) show(p *setup.Plan, secret string) error {
	w.result.Files, w.result.Conflicts = append([]setup.Shown{}, p.Show()...), p.Conflicts
	w.result.Notes = append(w.result.Notes, p.Notes...)
	for _, f := range w.result.Files {
		title := f.Path
		if f.New {
			title += " (new)"
		}
		w.say("\n%s", title)
		for _, l := range f.Lines {
			w.say("  %s", l)
		}
	}
	if len(w.result.Files) > 0 {
		w.say("\n%s", secret)
	}
	w.showApart(p.Apart)
	for _, n := range w.result.Notes {
		w.say("note: %s", n)
	}
	for _, c := range p.Conflicts {
		w.say("replaces: %s", c)
	}
	if p.Done() {
		w.say("\nHermes is already set up: nothing to write.")
	}
	var errs []error
	for _, e := range p.ByHand {
		errs = append(errs, e)
	}
	if len(errs) > 0 {
		return &hinted{errors.Join(errs...), "nothing was written; change these keys yourself, then run this again for the rest"}
	}
	return nil
}

// agree returns nil if the plan may be written.
func (w *setupRun) agree(p *setup.Plan) error {
	switch {
	case w.f.yes && len(p.Conflicts) > 0 && !w.f.replace:
		return &hinted{fmt.Errorf("%w: nothing was written (%s)", setup.ErrConflict, strings.Join(p.Conflicts, "; ")), "to replace its settings, use: --yes --replace"}
	case w.f.yes:
		return nil
	case !w.asking():
		return &hinted{errors.New("nothing was written: there is no terminal to ask at"), "to write without asking, use: --yes"}
	}
	question := "\nWrite these changes?"
	if len(p.Conflicts) > 0 {
		question = "\nThis disconnects Hermes from the other connector. Write these changes?"
	}
	ok, err := w.yes(question)
	if err == nil && !ok {
		err = errors.New("nothing was written")
	}
	return err
}

// undo reverts the changes of earlier runs.
func (w *setupRun) undo() error {
	list, err := setup.Undo(w.cfg.Data, w.result.Home.Path)
	if err != nil {
		return err
	}
	var left []string
	steps := w.undoSteps(list)
	if err := show(w.cmd, map[string]any{"hermes_home": w.result.Home, "files": append([]setup.Undone{}, list...), "steps": steps}, func(out io.Writer) {
		if len(list) == 0 {
			fmt.Fprintf(out, "Nothing to undo: this data folder has no record of changes to %s\n", clean(w.result.Home.Path))
		}
		for _, u := range list {
			fmt.Fprintf(out, "%s: %s\n", clean(u.Path), u.What)
			if u.Backup != "" {
				fmt.Fprintf(out, "  previous version: %s\n", clean(u.Backup))
			}
		}
		for _, s := range steps {
			fmt.Fprintf(out, "\nNext: %s\n", clean(s))
		}
	}); err != nil {
		return err
	}
	for _, u := range list {
		for _, key := range u.Left {
			left = append(left, fmt.Sprintf("%s: %s was changed since, so it stays", u.Path, key))
		}
	}
	if len(left) > 0 {
		return &hinted{errors.New(strings.Join(left, "\n")), "remove these yourself"}
	}
	return nil
}
