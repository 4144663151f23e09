package transport

import transportstore "github.com/parley-broker/parley/internal/store/transport"

// Figures count what a daemon does in transport, under the names by which it reports them to the database.
type Figures = transportstore.Figures
