// Package reviewui is the review UI: pages for reviewers, rendered on the server, on
// which waiting writes are shown and decided about.
//
// It decides nothing, and shows all text from models and destinations as inert text.
package reviewui
