package agent

// Waker is an agent whose backend can sleep.
type Waker interface {
	// Waits tells the agent that something waits for the conversation of a device while its status is not
	// online. The hub calls it each time that it looks, so it must be cheap. It does nothing if the backend
	// is online or is being woken.
	Waits(device string)
}
