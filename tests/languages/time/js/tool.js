// The interface `time` of `clock.wit`. This file runs while the component is built, and never again: only what is in the
// function is of the call.

export const time = {
  getCurrentTime: () => new Date().toISOString(),
};
