package main

import (
	"fmt"
	"net/url"
	"strconv"

	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/setup"
)

// catalogPlugin detects the hermes-mobile plugin from Hermes' catalog. It serves phones from within the
// gateway, on this server's default port and under the platform name of the plugin that --plugin installs.
func (w *setupRun) catalogPlugin() error {
	files, err := setup.ReadFiles(w.result.Home)
	if err != nil {
		return nil // the plan reports the error
	}
	p, there := files.PublicPlugin()
	if !there || !p.Enabled {
		return nil
	}
	disable := "hermes plugins disable hermes-mobile"
	if w.result.Home.Profile != "" {
		disable = "hermes -p " + w.result.Home.Profile + " plugins disable hermes-mobile"
	}
	if w.f.plugin && !w.f.print {
		return &hinted{fmt.Errorf("the plugin in %s also registers the platform mobile, and Hermes keeps only one of the two", p.Folder), "disable it with: " + disable + ", or run this without --plugin"}
	}
	if w.f.url != "" {
		return nil // the server is on another machine
	}
	port, running := w.cfg.Port, false
	var st server.Status
	if server.NewClient(w.cfg.Data).Get(w.cmd.Context(), "/status", &st) == nil {
		running = true
		if u, err := url.Parse(st.Address); err == nil {
			if n, err := strconv.Atoi(u.Port()); err == nil {
				port = n
			}
		}
	}
	if port != p.Port {
		return nil
	}
	conflict := fmt.Sprintf("the plugin in %s serves phones on port %d, which is this server's port", p.Folder, p.Port)
	free := doctor.FreePort(w.cfg.Host, port)
	keep := "disable the plugin with: " + disable + ", or set another MOBILE_PORT"
	if free > 0 {
		keep = fmt.Sprintf("disable the plugin with: %s, or use another port: MOBILE_PORT=%d %s setup", disable, free, program(w.cmd))
	}
	switch {
	case running, w.f.print:
		w.result.Notes = append(w.result.Notes, conflict+": only one of them can listen; "+keep)
		return nil
	case free > 0 && w.asking() && w.f.service == "": // a service would start with the settings of this run
		w.say("\nNote: %s.", conflict)
		yes, err := w.yes(fmt.Sprintf("Use port %d for this server instead?", free))
		if err != nil {
			return err
		}
		if yes {
			w.cfg.Port, w.port = free, free
			return nil
		}
	}
	return &hinted{fmt.Errorf("%s: nothing was written", conflict), keep}
}

// serve returns the command that starts the server, with the port that the user agreed to.
func (w *setupRun) serve() string {
	start := program(w.cmd) + " serve"
	if w.port != 0 {
		start = fmt.Sprintf("MOBILE_PORT=%d %s (or set port: %d in hermes-mobile.yaml in the data folder)", w.port, start, w.port)
	}
	return start
}
