package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// askedReturns is how many minions' returns are requested at once.
const askedReturns = 1000

// errNoReturns means that the master does not answer requests for returns, because it is a stock master. Its
// returns are in the files of the job cache.
var errNoReturns = errors.New("the master does not answer requests for returns")

// storedReturns requests a job's stored returns from the master, of some minions or of all if ids is empty, and
// calls f with each. creds are the token, or the name and password, that the job was published with, if any.
func (c *Client) storedReturns(ctx context.Context, jid string, ids []string, creds map[string]any,
	f func(id string, data map[string]any)) error {
	for all := len(ids) == 0; all || len(ids) > 0; {
		part := ids[:min(len(ids), askedReturns)]
		ids = ids[len(part):]
		c.mu.Lock()
		key := c.key
		c.mu.Unlock()
		reply, err := c.requestOrdered(ctx,
			map[string]any{"cmd": protocol.ReturnsCmd, "jid": jid, "ids": part, "key": key,
				"user": c.o.User, "kwargs": creds})
		if err != nil {
			return err
		}
		m, ok := payload.Map(reply)
		if !ok || len(m) == 0 {
			return errNoReturns
		}
		if e, ok := m["error"]; ok {
			return fmt.Errorf("cannot read returns from the master: %w", refusalError(e))
		}
		returns, _ := payload.Map(m["returns"])
		for id, v := range returns {
			if data, ok := payload.Map(v); ok {
				f(id, data)
			}
		}
		left := fields.Texts(m["left"])
		if len(left) > 0 && len(returns) == 0 {
			return errors.New("the master's answer has no returns")
		}
		all, ids = false, append(left, ids...)
	}
	return nil
}

// takeCredentials returns the credentials among a command's fields.
func takeCredentials(kwargs map[string]any) map[string]any {
	creds := map[string]any{}
	for _, key := range [...]string{"token", "eauth", "username", "password", "sharedsecret"} {
		if v, ok := kwargs[key]; ok {
			creds[key] = v
		}
	}
	return creds
}
