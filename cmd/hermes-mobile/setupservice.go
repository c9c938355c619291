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

// byHand says how to run the service if setup cannot create an account for it.
const byHand = "create the account with the commands in doc/service.md, or use --service systemd-user, which needs none"

// service adds the files of the service to a plan, and the commands that create its account.
func (w *setupRun) service(p *setup.Plan) error {
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
		p.Notes = append(p.Notes, "this service runs under your account, so other programs under it, including the agent, can answer approval cards; "+
			"to give it an account of its own, run this as root with --service systemd")
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

// showApart prints the commands that setup runs besides writing files.
func (w *setupRun) showApart(a *setup.Apart) {
	if w.result.Commands = a.Commands(); len(w.result.Commands) == 0 {
		return
	}
	w.say("Commands that create an account for the server:")
	for _, c := range w.result.Commands {
		w.say("+ %s", c)
	}
}

// showSteps prints the commands that the owner has to run for the service.
func (w *setupRun) showSteps() {
	for _, s := range w.result.Steps {
		w.say("  Run: %s", s)
	}
}

// undoSteps returns what the owner has to do after an undo: running programs still use the old settings.
func (w *setupRun) undoSteps(list []setup.Undone) []string {
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
			steps = append(steps, "stop the service, whose unit file is gone: systemctl "+user+"disable --now hermes-mobile; systemctl "+user+"daemon-reload")
		}
	}
	if _, runs := setup.Running(w.result.Home); runs && hermes {
		steps = append(steps, "restart the gateway, which still uses the old settings: "+(&setup.Plan{Options: setup.Options{Home: w.result.Home}}).Restart())
	}
	return steps
}

// sudoHome names the Hermes home of the user who ran sudo.
func sudoHome() string {
	account, err := user.Lookup(os.Getenv("SUDO_USER"))
	if err != nil || os.Geteuid() != 0 {
		return ""
	}
	home := filepath.Join(account.HomeDir, ".hermes")
	if _, err := os.Stat(home); err != nil {
		return ""
	}
	return "; for the user " + account.Username + " set HERMES_HOME=" + shellquote.Word(home)
}
