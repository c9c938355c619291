package main

import (
	"errors"
	"os"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/setup"
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
