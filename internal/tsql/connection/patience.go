package connection

import "strconv"

// SetLockTimeout says how many milliseconds a statement waits for a lock: 0 not at all, -1 without end.
func (c *Connection) SetLockTimeout(milliseconds int64) { c.patience = max(milliseconds, -1) }

// untold is no time: the database may have forgotten what it was told, with a transaction or a part of one.
const untold = -2

// tell sends the time for locks where the database does not have it.
func (c *Connection) tell() {
	if c.set == c.patience {
		return
	}
	milliseconds := c.patience // PostgreSQL waits without end at 0, and not at all never
	switch c.patience {
	case -1:
		milliseconds = 0
	case 0:
		milliseconds = 1
	}
	c.wait("set lock_timeout = " + strconv.FormatInt(milliseconds, 10))
	c.set = c.patience
}

// forgets notes that what was told in the transaction is undone.
func (c *Connection) forgets() {
	if c.set != -1 || c.patience != -1 {
		c.set = untold
	}
}
