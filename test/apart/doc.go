// Package apart tests the service that has an account of its own: what setup makes for it, and what the account of Hermes can
// and cannot do then.
package apart
