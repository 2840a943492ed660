package trove

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

// Descriptions in trove.instance.service_status that a guest agent reports.
const (
	statusHealthy         = "healthy"
	statusRunning         = "running"
	statusShutdown        = "shutdown"
	statusFailed          = "failed to spawn"
	statusBuilding        = "building"
	statusRestartRequired = "restart required"
	statusInstanceReady   = "instance ready"
)

// now returns the current time in the form for Trove's messages.
func now(e *modules.Env) float64 { return float64(e.Now().UnixMicro()) / 1e6 }

// heartbeatTag is the last part of a heartbeat's tag, after salt/beacon/<id>/trove/.
const heartbeatTag = "heartbeat"

// heartbeat returns the data of a heartbeat's event, without the minion's id.
func heartbeat(e *modules.Env, status string) map[string]any {
	return map[string]any{"payload": map[string]any{"service_status": status}, "sent": now(e)}
}

// report sends a heartbeat immediately, in the beacon's form. Without force it sends none until prepare has ended.
func (g *guest) report(ctx context.Context, status string, force bool) {
	if !force && !isPrepared(g.c.Env, g.settings) {
		return
	}
	data := heartbeat(g.c.Env, status)
	data["id"] = g.c.ID
	g.send(ctx, map[string]any{"cmd": "_minion_event", "id": g.c.ID, "pretag": nil, "events": []any{map[string]any{
		"tag": "salt/beacon/" + g.c.ID + "/trove/" + heartbeatTag, "data": data, "beacon_name": "trove"}}})
}

// conductor sends an event with a message for Trove's conductor: update_backup or report_root. args are the arguments
// of the conductor's interface; the time is added. The end of a cast needs no message, since the job returns.
func (g *guest) conductor(ctx context.Context, method string, args map[string]any) {
	args["instance_id"], args["sent"] = g.c.ID, now(g.c.Env)
	if g.c.Master == nil {
		g.c.Logger().Warn("Cannot tell Trove's conductor: there is no master", "method", method)
		return
	}
	if err := g.c.Master.Fire(ctx, "trove/conductor/"+method, args); err != nil {
		g.c.Logger().Warn("Cannot tell Trove's conductor", "method", method, "err", err)
	}
}

func (g *guest) send(ctx context.Context, load map[string]any) {
	if g.c.Master == nil {
		g.c.Logger().Warn("Cannot send a heartbeat: there is no master")
		return
	}
	if _, err := g.c.Master.Request(ctx, load); err != nil {
		g.c.Logger().Warn("Cannot send a heartbeat", "err", err)
	}
}
