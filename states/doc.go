// Package states is the room of the state system: the compiler from high to low state, requisites and the runner, with the
// renderers in states/render and the state modules in rooms of their own.
//
// Nothing lives here yet: no function of state.* is declared, so a minion answers as stock does for a function that it does
// not have.
package states
