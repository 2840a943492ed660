package murano

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/brine-salt/brine/modules"
)

func init() {
	modules.Register(Module)
	modules.RegisterOptions("murano")
}

// Module is the execution module "execplan".
var Module = &modules.Module{
	Name: "execplan",
	Doc:  "Run execution plans of OpenStack Murano.",
	Funcs: []modules.Def{
		{Name: "run", Doc: `Run the scripts of an execution plan of the format 2.0.0 to 2.2.0, and return what Murano's agent sends as its result. ErrorCode
is 0 if the plan succeeded; otherwise the return code is 1.

plan
    the plan as JSON text, character for character as it was signed, or Base64 of it: on a command line JSON would be taken for a map
signature
    Base64 of the signature of the name of the queue (this minion's id, unless the option murano names another) and the plan: RSA with
    PKCS #1 v1.5 and SHA-256`,
			Example: `salt db-7 execplan.run plan="$(base64 -w 0 plan.json)" signature="$(cat plan.sig)"`, Params: []modules.Param{{Name: "plan", Type: modules.String, Secret: true},
				{Name: "signature", Type: modules.String}}, Run: run},
	},
}

func run(ctx context.Context, c *modules.Call) (any, error) {
	s, err := readSettings(c)
	if err != nil {
		return nil, err
	}
	text, err := planText(c.Str("plan"))
	if err != nil {
		return nil, err
	}
	if err := s.verify(text, c.Str("signature")); err != nil {
		return nil, err
	}
	p, err := parsePlan(text)
	if err != nil {
		return nil, err
	}
	if err := s.stamp(p.Stamp); err != nil {
		return nil, err
	}
	var results []any
	if err = p.validate(); err == nil {
		results, err = execute(ctx, c, s, p)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return report(c, p, results, err)
}

// planText returns a plan in the form that was signed.
func planText(given string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(given), "{") {
		return []byte(given), nil
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(given))
	if err != nil {
		return nil, fmt.Errorf("cannot take the plan: it is neither a JSON object nor Base64 of one: %w", err)
	}
	return text, nil
}

// planError is an error with Murano's code: 2 for an invalid plan, 9 for an unknown format, 100 for a failed script.
type planError struct {
	code int64
	text string
	info any
}

func (e *planError) Error() string { return e.text }

// report returns the result of a plan in the form that the agent sends (muranoagent/execution_result.py).
func report(c *modules.Call, p *plan, results []any, err error) (any, error) {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	code, body := int64(0), any(results)
	if err != nil {
		code = 1
		var info any
		if e := (*planError)(nil); errors.As(err, &e) {
			code, info = e.code, e.info
		}
		body = map[string]any{"Message": err.Error(), "AdditionalInfo": info}
		c.SetRetcode(1)
	}
	return map[string]any{"FormatVersion": "2.0.0", "ID": hex.EncodeToString(id), "SourceID": p.ID, "Action": "Execution:Result",
		"ErrorCode": code, "Body": body, "Time": c.Now().UTC().Format("2006-01-02 15:04:05.000000")}, nil
}

// killAfter is how long a script may take to end after SIGTERM.
const killAfter = 5 * time.Second
