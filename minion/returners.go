package minion

import "context"

// sendToReturners hands a return to returners.
func (m *Minion) sendToReturners(ctx context.Context, l *link, names []string, ret map[string]any) {
}
