import theme from "vitepress/theme-without-fonts"; // the system's fonts
import "./site.css";

export default theme;
