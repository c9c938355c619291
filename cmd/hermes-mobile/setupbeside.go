package main

import (
	"fmt"
	"net/url"
	"strconv"

	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/setup"
)

// beside deals with the plugin hermes-mobile of Hermes' catalog, which serves phones by itself: at the port that this server has by
// default, and under the platform name of our plug-in.
func (w *wizard) beside() error {
	files, err := setup.ReadFiles(w.result.Home)
	if err != nil {
		return nil // the plan says what is wrong with them
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
		return &hinted{fmt.Errorf("the plugin in %s registers the platform mobile, too, and Hermes keeps one of the two", p.Folder), "disable it with: " + disable + ", or run this without --plugin"}
	}
	if w.f.url != "" {
		return nil // the server is elsewhere
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
	conflict := fmt.Sprintf("the plugin in %s serves phones from within the gateway at port %d, which is this server's", p.Folder, p.Port)
	free := doctor.FreePort(w.cfg.Host, port)
	keep := disable + ", or give this server another port"
	if free > 0 {
		keep = fmt.Sprintf("%s, or give this server another port: MOBILE_PORT=%d %s setup", disable, free, program(w.cmd))
	}
	switch {
	case running, w.f.print:
		w.result.Notes = append(w.result.Notes, conflict+": one of them cannot listen; keep one ("+keep+")")
		return nil
	case free > 0 && w.asking() && w.f.service == "": // a service starts with the settings of this run
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

// serve is the command that starts the server, with the port that was agreed to.
func (w *wizard) serve() string {
	start := program(w.cmd) + " serve"
	if w.port != 0 {
		start = fmt.Sprintf("MOBILE_PORT=%d %s (or port: %d in %s)", w.port, start, w.port, "hermes-mobile.yaml of the data folder")
	}
	return start
}
