package main

import (
	"hermes-mobile/internal/setup"
)

// api runs hermes-mobile setup --api: it enables Hermes' API server and prints the settings for this server.
func (w *setupRun) api() error {
	plan, api, err := setup.NewAPIPlan(w.result.Home, "")
	if err != nil {
		return err
	}
	w.say("Hermes home     %s", w.result.Home.Path)
	if err := w.show(plan, "<secret> stands for a new secret, stored only there."); err != nil {
		return err
	}
	if !w.f.print && !plan.Done() {
		if err := w.agree(plan); err != nil {
			return err
		}
		if plan, api, err = setup.NewAPIPlan(w.result.Home, setup.NewAPIKey()); err != nil {
			return err
		}
		if err := w.write(plan); err != nil {
			return err
		}
		w.next("restart the gateway to start its API server", plan.Restart())
	}
	w.result.URL, w.result.API = api.URL, &api
	w.say("\nSettings for this server:")
	w.say("  MOBILE_API_URL=%s", api.URL)
	switch {
	case api.FromHere && w.result.Home.Path == w.cfg.HermesHome:
		w.say("  The key is %s in %s. A server on this machine reads it from there.", api.KeyName, api.KeyPlace)
	default:
		api.FromHere = false
		w.say("  MOBILE_API_KEY_FILE=<file with the key, which is %s in %s>", api.KeyName, api.KeyPlace)
	}
	if err := w.apiJobs(); err != nil {
		return err
	}
	return w.end()
}

// apiJobs asks whether to use scheduled jobs, which Hermes does not advertise. It does not ask if
// MOBILE_API_JOBS is set.
func (w *setupRun) apiJobs() error {
	const name = "MOBILE_API_JOBS"
	switch {
	case w.cfg.APIJobs != "":
		return nil
	case !w.asking():
		w.say("  %s=on also shows Hermes' scheduled jobs. It is off by default: Hermes does not advertise this API, and a later version may change it.", name)
		return nil
	}
	w.say("\nHermes' API has scheduled jobs, but does not advertise them to apps. They work with all tested versions. A later version may change them without notice.")
	yes, err := w.yes("Use scheduled jobs?")
	answer := "off"
	if yes {
		answer = "on"
	}
	if err == nil {
		w.say("  %s=%s", name, answer)
	}
	return err
}
