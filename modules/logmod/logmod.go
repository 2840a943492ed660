// Package logmod is Salt's execution module "log": messages in the minion's log, for templates (salt/modules/logmod.py).
package logmod

import (
	"context"
	"log/slog"

	"github.com/brine-salt/brine/internal/saltlog"
	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is "log".
var Module = &modules.Module{Name: "logmod", Virtual: "log", Doc: "Messages in the minion's log.", Funcs: []modules.Def{
	{Name: "critical", Doc: doc, Example: `salt '*' log.critical "The sky is falling"`, Params: message, Run: critical},
	{Name: "debug", Doc: doc, Example: `salt '*' log.debug "A detail"`, Params: message, Run: debug},
	{Name: "error", Doc: doc, Example: `salt '*' log.error "Something failed"`, Params: message, Run: failure},
	{Name: "exception", Doc: doc, Example: `salt '*' log.exception "Something failed"`, Params: message, Run: failure},
	{Name: "info", Doc: doc, Example: `salt '*' log.info "Something happened"`, Params: message, Run: info},
	{Name: "warning", Doc: doc, Example: `salt '*' log.warning "Something looks wrong"`, Params: message, Run: warning},
}}

var message = []modules.Param{{Name: "message"}}

const doc = `Write a message to the minion's log, at the level of this name.

message
    the text`

func write(ctx context.Context, c *modules.Call, level slog.Level) (any, error) {
	c.Logger().Log(ctx, level, c.Str("message"), "jid", c.JID)
	return true, nil
}

func critical(ctx context.Context, c *modules.Call) (any, error) {
	return write(ctx, c, saltlog.LevelCritical)
}

func debug(ctx context.Context, c *modules.Call) (any, error) { return write(ctx, c, slog.LevelDebug) }

func failure(ctx context.Context, c *modules.Call) (any, error) {
	return write(ctx, c, slog.LevelError)
}

func info(ctx context.Context, c *modules.Call) (any, error) { return write(ctx, c, slog.LevelInfo) }

func warning(ctx context.Context, c *modules.Call) (any, error) { return write(ctx, c, slog.LevelWarn) }
