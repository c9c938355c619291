package gateway

import "context"

// Client is the client of one gateway. All methods may be called concurrently.
type Client struct {
	current *conn
	turns   sessionQueue
}

// connected returns the route in use, and chooses one where there is none.
func (c *Client) connected(context.Context) (*conn, error) {
	if c.current == nil {
		return nil, ErrNoRoute
	}
	return c.current, nil
}

// failed says that a request on cn failed below HTTP: the next one chooses a route anew.
func (c *Client) failed(*conn, error) {}
