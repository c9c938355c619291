package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/setup"
)

func homeCommand() *cobra.Command {
	var profile string
	var dry bool
	named := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringVar(&profile, "profile", "", "`name` of the Hermes profile (default: the one connected to the device)")
		return jsonFlag(cmd)
	}
	set := named(&cobra.Command{
		Use: "set DEVICE", Short: "Make a device the home channel", Args: takes("DEVICE"),
		Long: `Make a device the home channel of this server, for "hermes-mobile deliver --to home", and of the Hermes
that the device talks to.

If Hermes runs on this machine, the command writes one line to its .env. With the plugin from
"hermes-mobile setup --plugin" it also writes a few lines to config.yaml. The rest of these files stays
as it is, and the command keeps a backup of each. "home clear" or "setup --undo" reverts the change. If
Hermes runs elsewhere, the command prints what to write there.`,
		Example: `  hermes-mobile home set tel-1
  hermes-mobile home set tel-1 --print`,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := newHoming(cmd, profile)
			if err == nil {
				err = h.set(args[0], dry)
			}
			return err
		},
	})
	set.Flags().BoolVar(&dry, "print", false, "show the changes without writing them")
	showIt := func(cmd *cobra.Command, _ []string) error {
		h, err := newHoming(cmd, profile)
		if err == nil {
			err = h.show()
		}
		return err
	}
	cmd := group(&cobra.Command{
		Use: "home", SuggestFor: []string{"sethome"}, Short: "Choose the device that receives messages to \"home\"",
		Long: `Choose the home channel: the device that receives messages from "hermes-mobile deliver --to home" and
the results of Hermes' scheduled jobs that name no chat. Without a command, "home" shows the current
one. A device can also make itself the home channel with /sethome.`,
		Example: `  hermes-mobile home
  hermes-mobile home set tel-1`,
	}, set,
		named(&cobra.Command{Use: "show", Short: "Show the home channel", Args: takes(), RunE: showIt, Example: `  hermes-mobile home show --json | jq -r .device.id`}),
		named(&cobra.Command{Use: "clear", Short: "Remove the home channel", Args: takes(), Example: `  hermes-mobile home clear`,
			Long: `Remove the home channel, and revert what "home set" wrote to the files of Hermes.`,
			RunE: func(cmd *cobra.Command, _ []string) error {
				h, err := newHoming(cmd, profile)
				if err == nil {
					err = h.clear()
				}
				return err
			}}))
	cmd.RunE = showIt
	return named(cmd)
}

// homeResult is the JSON result.
type homeResult struct {
	Device *hub.DeviceInfo `json:"device"` // the home channel, or null
	Hermes *homeOfHermes   `json:"hermes,omitempty"`
	// Elsewhere is the text to write on the machine of Hermes if that is another one.
	Elsewhere string         `json:"elsewhere,omitempty"`
	Undone    []setup.Undone `json:"undone,omitempty"`
	Notes     []string       `json:"notes,omitempty"`
	Steps     []string       `json:"steps,omitempty"` // what the owner still has to do
}

// homeOfHermes is the home channel in the files of Hermes on this machine.
type homeOfHermes struct {
	Home     setup.Home    `json:"hermes_home"`
	Variable string        `json:"variable"`
	Device   string        `json:"device,omitempty"`
	Files    []setup.Shown `json:"files,omitempty"`
	Written  bool          `json:"written"`
	Backups  []string      `json:"backups,omitempty"`
}

// homing is one run of the command.
type homing struct {
	cmd     *cobra.Command
	cfg     *config.Config
	profile string
	result  homeResult
}

func newHoming(cmd *cobra.Command, profile string) (*homing, error) {
	cfg, _, err := settings(cmd)
	return &homing{cmd: cmd, cfg: cfg, profile: profile}, err
}

func (h *homing) note(format string, args ...any) {
	h.result.Notes = append(h.result.Notes, fmt.Sprintf(format, args...))
}

// hermes finds the Hermes home on this machine whose gateway is one of these. It returns an empty
// home if no home matches.
func (h *homing) hermes(gateways ...relay.GatewayState) (setup.Home, setup.Channel, error) {
	homes, err := setup.Homes(h.cfg.HermesHome)
	if err != nil && h.profile == "" {
		return setup.Home{}, setup.Channel{}, nil
	}
	if err == nil && h.profile != "" {
		var one setup.Home
		one, err = setup.Pick(homes, h.profile)
		homes = []setup.Home{one}
	}
	if err != nil {
		return setup.Home{}, setup.Channel{}, err
	}
	var errs []error
	for _, home := range homes {
		for _, g := range gateways {
			c, err := setup.ReadChannel(home, g.KnownName != "" && g.KnownName != "relay")
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("%s: %w", home.Path, err))
			case c.Gateway != "" && c.Gateway == g.ID:
				return home, c, nil
			}
		}
	}
	return setup.Home{}, setup.Channel{}, errors.Join(errs...)
}

// set makes a device the home channel of the server and then of Hermes.
func (h *homing) set(id string, dry bool) error {
	path := "/home/set"
	if dry {
		path = "/home/look"
	}
	to, err := post[server.HomeChannel](h.cmd.Context(), h.cmd, path, server.Command{ID: id})
	if err != nil {
		return err
	}
	h.result.Device = to.Device
	if asked := strings.TrimPrefix(id, frame.SessionPrefix); asked != to.Device.ID {
		h.note("%s is in the conversation of %s, so %s becomes the home channel", asked, to.Device.ID, to.Device.ID)
	}
	err = h.tell(to, dry)
	if showErr := show(h.cmd, h.result, func(w io.Writer) {
		if !dry {
			fmt.Fprintf(w, "%s is now the home channel\n", deviceLabel(to.Device))
		}
		h.printHermes(w)
	}); err == nil {
		err = showErr
	}
	return err
}

// tell writes the home channel to the files of Hermes.
func (h *homing) tell(to server.HomeChannel, dry bool) error {
	undone := "the server's home channel is set, but Hermes does not know it yet"
	if dry {
		undone = "nothing was changed"
	}
	if to.Gateway == nil {
		h.note("no Hermes gateway is connected to this device: it gets only deliveries to this server's \"home\"")
		return nil
	}
	home, c, err := h.hermes(*to.Gateway)
	if err != nil {
		return hint(err, undone)
	}
	if home.Path == "" {
		h.elsewhere(to)
		return nil
	}
	var p *setup.Plan
	var backups []string
	if dry {
		p, err = setup.NewChannelPlan(home, c, to.Device.ID, to.Device.User)
	} else {
		p, backups, err = setup.WriteChannel(h.cfg.Data, home, c, to.Device.ID, to.Device.User, time.Now())
	}
	if err != nil {
		return hint(fmt.Errorf("set the home channel of Hermes: %w", err), undone)
	}
	var errs []error
	for _, e := range p.ByHand {
		errs = append(errs, e)
	}
	if len(errs) > 0 {
		return hint(errors.Join(errs...), undone)
	}
	h.result.Notes = append(h.result.Notes, p.Notes...)
	h.result.Hermes = &homeOfHermes{Home: home, Variable: c.Variable, Device: c.Device, Files: p.Show(), Written: !dry && !p.Done(), Backups: backups}
	if !dry {
		h.result.Hermes.Device = to.Device.ID
		h.note("no restart needed: Hermes uses the new home channel from its next message or job")
	}
	h.limits(c, to.Gateway.Version)
	return nil
}

// limits notes what this version of Hermes does not do with a home channel.
func (h *homing) limits(c setup.Channel, v relay.Version) {
	switch {
	case c.Plugin:
	case v == relay.Older:
		h.note("Hermes 0.19 does not send results of scheduled jobs to the home channel: create jobs in the chat, or with \"deliver: relay:<device>\"")
	default:
		h.note("without the plugin (hermes-mobile setup --plugin) Hermes does not send results of scheduled jobs to the home channel: create jobs in the chat")
	}
}

// elsewhere prints what to write on the machine of the gateway.
func (h *homing) elsewhere(to server.HomeChannel) {
	g := to.Gateway
	plugin := g.KnownName == "mobile"
	relay := !plugin
	if !plugin && (len(g.Names) == 0 || g.Names[0] == "mobile") && g.Version != "0.19" {
		plugin = true // cannot be determined from here
	}
	h.result.Elsewhere = setup.ChannelByHand(to.Device.ID, to.Device.User, relay, plugin)
	h.note("the Hermes of this device (gateway %s) runs on another machine, or was not connected with hermes-mobile setup: set the home channel there", g.Name)
}

// printHermes prints the part of the result about Hermes.
func (h *homing) printHermes(w io.Writer) {
	if r := h.result.Hermes; r != nil {
		for _, f := range r.Files {
			fmt.Fprintf(w, "\n%s\n", clean(f.Path))
			for _, l := range f.Lines {
				fmt.Fprintf(w, "  %s\n", clean(l))
			}
		}
		for _, b := range r.Backups {
			fmt.Fprintf(w, "  backup  %s\n", clean(b))
		}
	}
	for _, u := range h.result.Undone {
		fmt.Fprintf(w, "%s: %s\n", clean(u.Path), u.What)
	}
	for _, n := range h.result.Notes {
		fmt.Fprintf(w, "note: %s\n", clean(n))
	}
	if h.result.Elsewhere != "" {
		fmt.Fprintln(w, h.result.Elsewhere)
	}
	for _, s := range h.result.Steps {
		fmt.Fprintf(w, "Next: %s\n", clean(s))
	}
}

// show shows the home channel of the server and of the Hermes on this machine.
func (h *homing) show() error {
	now, err := get[server.HomeChannel](h.cmd.Context(), h.cmd, "/home")
	if err != nil {
		return err
	}
	h.result.Device = now.Device
	if err := h.readHermes(); err != nil {
		return err
	}
	r := h.result.Hermes
	if r != nil && now.Device != nil && r.Device != now.Device.ID {
		h.note("Hermes uses another device; to use the same one, run: hermes-mobile home set %s", now.Device.ID)
	}
	return show(h.cmd, h.result, func(w io.Writer) {
		if now.Device == nil {
			fmt.Fprintln(w, "No home channel. Set one with: hermes-mobile home set DEVICE")
		} else {
			fmt.Fprintf(w, "home channel  %s, %s\n", deviceLabel(now.Device), deviceState(*now.Device))
		}
		if r != nil && r.Device != "" {
			fmt.Fprintf(w, "Hermes        %s (%s of %s)\n", clean(r.Device), r.Variable, clean(r.Home.Path))
		} else if r != nil {
			fmt.Fprintf(w, "Hermes        none (%s of %s)\n", r.Variable, clean(r.Home.Path))
		}
		h.printHermes(w)
	})
}

// readHermes reads the home channel from the files of Hermes on this machine.
func (h *homing) readHermes() error {
	st, err := get[server.Status](h.cmd.Context(), h.cmd, "/status")
	if err != nil || st.Relay == nil {
		return err
	}
	home, c, err := h.hermes(st.Relay.Gateways...)
	if err == nil && home.Path != "" {
		h.result.Hermes = &homeOfHermes{Home: home, Variable: c.Variable, Device: c.Device}
	}
	return err
}

// clear removes the home channel.
func (h *homing) clear() error {
	before, err := get[server.HomeChannel](h.cmd.Context(), h.cmd, "/home")
	if err != nil {
		return err
	}
	if _, err := post[any](h.cmd.Context(), h.cmd, "/home/clear", server.Command{}); err != nil {
		return err
	}
	homes, _ := setup.Homes(h.cfg.HermesHome) // without Hermes there is nothing to revert
	for _, home := range homes {
		list, err := setup.UndoChannel(h.cfg.Data, home.Path)
		if err != nil {
			return hint(err, "the server's home channel is removed, but that of Hermes is not")
		}
		if h.result.Undone = append(h.result.Undone, list...); len(list) > 0 {
			h.result.Steps = append(h.result.Steps, "restart the gateway, which keeps the old home channel until then: "+(&setup.Plan{Options: setup.Options{Home: home}}).Restart())
		}
	}
	if err := h.readHermes(); err != nil {
		return err
	}
	if r := h.result.Hermes; r != nil && r.Device != "" {
		h.note("Hermes still uses %s as its home channel, which this command did not set: remove %s from .env in %s yourself, and home_channel from config.yaml if it is there",
			r.Device, r.Variable, r.Home.Path)
	}
	return show(h.cmd, h.result, func(w io.Writer) {
		if before.Device == nil {
			fmt.Fprintln(w, "There was no home channel.")
		} else {
			fmt.Fprintf(w, "%s is no longer the home channel\n", deviceLabel(before.Device))
		}
		h.printHermes(w)
	})
}

// deviceLabel returns the id and the name of a device for display.
func deviceLabel(d *hub.DeviceInfo) string {
	if d.Name == "" || d.Name == d.ID {
		return clean(d.ID)
	}
	return clean(d.ID + " (" + d.Name + ")")
}
