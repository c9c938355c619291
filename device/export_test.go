package device

import "time"

// SetRoomWait shortens the patience with a slow loop.
func (c *Config) SetRoomWait(d time.Duration) { c.roomWait = d }
