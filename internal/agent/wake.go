package agent

// Waker is an agent whose backend can sleep, beside what every Agent does.
type Waker interface {
	// Waits says that something waits for a device's conversation while its status is not online. It is called each time that the
	// hub looks, so often, and must be cheap; it does nothing where the backend is there, or is being woken.
	Waits(device string)
}
