package cmdmod

// noTerminal keeps an opened terminal from becoming ours.
const noTerminal = 0
