// Package reviewui is the review desk: pages for people, made on the server, on
// which writes that wait are looked at and decided about.
//
// It decides nothing, and shows whatever comes from models and destinations as
// inert text.
package reviewui
