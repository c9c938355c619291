package device

import "time"

// SetRoomWait shortens the time to wait for a slow loop.
func (c *Config) SetRoomWait(d time.Duration) { c.roomWait = d }
