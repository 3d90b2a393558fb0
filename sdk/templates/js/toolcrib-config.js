// Values of `config` under [plugin.NAME] in the settings of the host. Comes with `--needs config`.

import * as store from "wasi:config/store@0.2.0-rc.1";
import { textOf } from "./toolcrib.js";

/** Returns the value of a name, or undefined. In place of a secret it is a word that stands for it in requests. */
export const get = (name) => store.get(textOf(name, "a name")) ?? undefined;
