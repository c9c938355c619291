package main

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/setup"
	"hermes-mobile/internal/shellquote"
)

// What hermes-mobile setup --service does.

// byHand is where the account of a service is made by hand.
const byHand = "doc/operate.md has the commands for an account of its own, and --service systemd-user needs none"

// service adds the files of the service to a plan, and what an account of its own needs.
func (w *wizard) service(p *setup.Plan) error {
	binary, err := setup.Binary()
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	program := setup.Program{Binary: binary, Data: w.cfg.Data, HermesHome: w.cfg.HermesHome, User: home}
	switch w.f.service {
	case setup.Systemd:
		if err := setup.CheckApart(binary, w.cfg.Data); err != nil {
			return hint(err, byHand)
		}
		if program.Apart, err = setup.NewApart(w.cfg.Data, access.PairingDir(w.cfg.HermesHome)); err != nil {
			return hint(err, byHand)
		}
		p.Apart = program.Apart
		p.Notes = append(p.Notes, p.Apart.Notes()...)
	case setup.SystemdUser:
		p.Notes = append(p.Notes, "this service runs under your account, like what else you run: a program of yours, and an agent that runs under it, can answer approval cards; "+
			"run this as root with --service systemd for an account of its own")
	}
	s, err := setup.NewService(w.f.service, program)
	if err != nil {
		return misuse(w.cmd, "--service: %s", err)
	}
	w.result.Steps = s.Steps
	files, err := s.Files()
	p.Files = append(p.Files, files...)
	if errors.Is(err, os.ErrPermission) {
		return hint(err, byHand)
	}
	return err
}

// showApart shows what is done beside writing files.
func (w *wizard) showApart(a *setup.Apart) {
	if w.result.Commands = a.Commands(); len(w.result.Commands) == 0 {
		return
	}
	w.say("An account of its own for the server:")
	for _, c := range w.result.Commands {
		w.say("+ %s", c)
	}
}

// showSteps shows what the owner is to run for the service.
func (w *wizard) showSteps() {
	for _, s := range w.result.Steps {
		w.say("  run     %s", s)
	}
}

// undoSteps is what is left to do after an undo: what runs has read the files before.
func (w *wizard) undoSteps(list []setup.Undone) []string {
	steps := []string{}
	hermes := false
	for _, u := range list {
		rel, err := filepath.Rel(w.result.Home.Path, u.Path)
		inside := err == nil && !strings.HasPrefix(rel, "..")
		hermes = hermes || inside
		if base := filepath.Base(u.Path); !inside && base == "hermes-mobile.service" {
			user := ""
			if filepath.Dir(u.Path) != setup.UnitFolder {
				user = "--user "
			}
			steps = append(steps, "stop the service, whose file is gone: systemctl "+user+"disable --now hermes-mobile; systemctl "+user+"daemon-reload")
		}
	}
	if _, runs := setup.Running(w.result.Home); runs && hermes {
		steps = append(steps, "restart the gateway, which goes on with what it has read: "+(&setup.Plan{Options: setup.Options{Home: w.result.Home}}).Restart())
	}
	return steps
}

// sudoHome names the Hermes home of the person who has become root.
func sudoHome() string {
	account, err := user.Lookup(os.Getenv("SUDO_USER"))
	if err != nil || os.Geteuid() != 0 {
		return ""
	}
	home := filepath.Join(account.HomeDir, ".hermes")
	if _, err := os.Stat(home); err != nil {
		return ""
	}
	return "; that of " + account.Username + " is HERMES_HOME=" + shellquote.Word(home)
}
