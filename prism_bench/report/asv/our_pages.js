"use strict";
/* Our pages in asv's: each is a separate document in a frame, so that neither's style reaches the other. */
$(document).ready(function () {
  function hide() { $(".prism-page").hide(); }

  $(".prism-nav").each(function () {
    var name = this.id.replace("nav-li-", ""), title = $(this).text();
    $("<iframe>", {"id": name + "-display", "class": "prism-page", "title": title}).appendTo("body").hide();
    $.asv.register_page(name, function () {
      var frame = $("#" + name + "-display");
      hide();
      $("#title").text("");
      if (!frame.attr("src")) frame.attr("src", "prism_bench/" + name + ".html");
      frame.show();
    });
  });

  /* asv hides only the pages it knows; its own handler runs after this one and shows the page. */
  $(window).on("hashchange", hide);
});
