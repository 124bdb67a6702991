// Function words: articles, pronouns, prepositions, auxiliaries, question words. They carry no topic, so they neither
// score nor count in a length; in phrases they count like any word. By language, since "war" is one in German but not
// in English. Lower case, accents folded.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace muniment::retrieval {

namespace function_words {

struct List {
  std::string_view language;  // ISO 639-1
  std::string_view words;     // separated by spaces
};

// clang-format off
inline constexpr auto lists = std::to_array<List>({
    {"en",
     "a about after all also am an and any are as at be because been before being between both but by "
     "can't cannot could couldn't did didn't do does doesn't doing don't each for from had has have having "
     "he her hers him his how i i'd i'll i'm i've if in into is isn't it its me my not of on or other our "
     "ours she should so some such than that the their theirs them then there these they this those to us "
     "was wasn't we we'll we're we've were what when where which while who whom whose why with would you "
     "you're you've your yours"},
    {"de",
     "aber als am an auch auf aus bei bin bis bist da damit das dass dem den der des dich die dies diese "
     "diesem diesen dieser dieses dir du durch ein eine einem einen einer eines er es fur habe haben hat "
     "hatte hatten ich ihm ihn ihnen ihr ihre im in ist kann konnen mein meine mich mir mit nach nicht "
     "noch nur ob oder sein seine sich sie sind so uber um und uns unter viele vom von vor wann war waren "
     "warum was welche welchem welchen welcher welches wem wen wenn wer werden wie wieviel wir wird wo "
     "wurde wurden zu zum zur zwischen"},
    {"fr",
     "a ai au aux avec c'est ce ces cet cette comme d dans de des du elle elles en est et etaient etait "
     "ete il ils je l la le les leur leurs lui ma mais me mes moi mon n ne nos notre nous on ont ou par "
     "pas pour qu qu'est quand que quel quelle quelles quels qui quoi s sa se ses son sont sur ta te tes "
     "toi ton tu un une vos votre vous y"},
    {"es",
     "a al como con cual cuales cuando cuantas cuanto cuantos de del desde donde el ella ellas ellos en "
     "entre era eran es esa ese eso esta estaba este esto fue fueron ha habia han hasta la las le les lo "
     "los me mi mis muy nos o para pero por porque que quien quienes se ser si son su sus te tiene tu tus "
     "un una unas unos y yo"},
    {"it",
     "a ai al alla alle anche che chi ci come con cosa cui da dai dal dalla degli dei del della delle di "
     "dove e ed era erano fu gli ha hanno i il in io l la le lo loro ma mi nei nel nella nelle noi non o "
     "per perche piu quale quali quando quanto quello questa queste questi questo se si sono su sua sul "
     "sulla suo tra un una uno vi"},
    {"pt",
     "a ao aos as com como da das de do dos e ela elas ele eles em entre era essa esse esta este eu foi "
     "foram ha isso isto ja mais mas me meu minha na nao nas no nos o onde os ou para pela pelas pelo "
     "pelos por porque quais qual quando quanto que quem sao se sem ser seu seus sua suas tambem te tem um "
     "uma voce"},
    {"nl",
     "aan als bij dan dat de deze die dit door een en er had heb hebben heeft het hij hoe hoeveel hun ik "
     "in is je kan maar me met mijn naar niet nog of om ons onze ook op over te tot u uit van voor waar "
     "waarom wanneer waren was wat we welk welke werd wie wij worden wordt ze zich zij zijn zo"},
    {"sv",
     "alla att av de dem den denna dessa det detta dig din du ej eller en er ett for fran ha hade han har "
     "hon honom hur i inte jag kan med mig min mot nar och om pa sa sig sin som till under upp ut vad var "
     "vara varfor vem vi vid vilka vilken vilket"},
    {"da",
     "af alle at blev de dem den denne der deres det dette dig din du efter eller en er et for fra ha han "
     "har havde hun hvad hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor i ikke jeg kan kunne man "
     "med mig min mod naar nar og om op pa sig sin skal som til ud under var ved vi vil"},
    {"no",
     "alle at av ble bli de dem den denne der deres det dette du eller en er et etter for fra ha hadde han "
     "har hun hva hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor i ikke jeg kan man med meg min mot "
     "nar og om opp pa seg sin skal som til under ut var ved vi vil"},
    {"fi",
     "ei ja joka jos kanssa ken kuin kuka kun kuten me mika milloin mina minka missa mita mutta myos ne "
     "niin nyt oli olivat olla on ovat se sen sina sita tai tama tassa te vain voi"},
    {"pl",
     "ale by byc byl byla bylo co czy dla do gdy gdzie go i ich ile ja jak jaka jaki jakie jako jego jej "
     "jest kiedy kto ktora ktore ktory ma mi mu na nad nie o od on ona ono oraz po pod przez przy sa sie "
     "ta tak te tego tej ten to tym u w we z za ze"},
    {"cs",
     "a aby ale ani az bude by byl byla bylo byt co do i ja jak jaka jake jako jaky je jeho jej jejich jen "
     "jsem jsou k kde kdo kdy kolik ktera ktere ktery ma na nad ne nebo o od on ona po pod podle pri pro "
     "proc s se si ta tak tam ten to u v ve z za ze"},
    {"ro",
     "a aceasta acest ai al ale am ar are au ca cand care cat cati ce cine cu cum de din este eu fi in la "
     "le lui mai ne nu o pe pentru prin sa sau se si sunt un una unde unei unui va"},
    {"hu",
     "a aki amely ami arra az azok azt be de egy el en es ez ezt ha hany hogy hogyan hol is itt kell ki le "
     "lehet ma meg mert mi mikor milyen mint mit nagy ne nem ok ott s te van volt"},
    {"tr",
     "ama ben bir bu cok da daha de degil diye en gibi hangi icin ile ise kac kadar ki kim mi mu nasil ne "
     "neden nerede o olan olarak sen ve veya ya"},
    {"id",
     "ada adalah akan apa atau bagaimana bahwa berapa bisa dalam dan dari dengan di dia ini itu juga kami "
     "kapan karena ke kita mana mengapa mereka oleh pada saya sebagai siapa telah tidak untuk yang"},
    {"ru",
     "а без был была были было быть в вас ваш во все вы где для до его ее если есть же за и из или им их к "
     "как какая какие каким каких какое какои какому когда кого кому которая которое которые которыи кто "
     "ли мне мы на над не него нет но о об он она они оно от по под при с сколько со так также то того "
     "только том ты у уже чего чеи чем что чтобы это этого этои этом этот я"},
    {"uk",
     "а але без був була були було в ви вона вони воно все від де для до з за и иого коли кому котрии ми "
     "на над не ні о по при про скільки та так те ти то у хто це цеи що щоб я як яка яке якии які є і із"},
    {"el",
     "α αν απο αυτα αυτη αυτο αυτοσ για δε δεν εγω ειναι εκει ενα ενασ η ηταν θα και κατα με μετα μια να ο "
     "οι οπου οταν οτι που πριν προσ πωσ σε στα στη στην στο στον τα τη την τησ τι τισ το τον του τουσ των "
     "ωσ"},
    {"ar",
     "التي الذي الذين الي اما ان انه او اي اين بعد بين ثم حتي حيث ذلك علي عن عند عندما غير في قبل قد كان "
     "كانت كل كم كما كيف لا لم لماذا لن له لها ليس ما ماذا متي مع مما من منذ هذا هذه هل هم هو هي و وقد"},
    {"hi",
     "इस इसके उस उसके एक ओर और कब कर करने कहाँ का कि कितने किस की के को कौन क्या क्यों जो तक तथा तो था थी "
     "थे द्वारा ने पर भी में यह या ये लिए वह वे से हम ही हुआ है हैं हो"},
});
// clang-format on
static_assert(lists.size() <= 32);

// The languages in which each word is a function word, as bits in the order of the lists.
using Table = std::unordered_map<std::string_view, std::uint32_t>;

inline const Table& table() {
  static const Table all = [] {
    Table made;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      std::string_view rest = lists[i].words;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        made[rest.substr(0, end)] |= std::uint32_t{1} << i;
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
    return made;
  }();
  return all;
}

}  // namespace function_words

// The bit of a language, ISO 639-1; 0 for a language without a list.
inline std::uint32_t language_bit(std::string_view language) {
  for (std::size_t i = 0; i < function_words::lists.size(); ++i) {
    if (function_words::lists[i].language == language) return std::uint32_t{1} << i;
  }
  return 0;
}

// The languages in which `word`, in lower case and folded, is a function word.
inline std::uint32_t languages_of_function_word(std::string_view word) {
  const auto found = function_words::table().find(word);
  return found == function_words::table().end() ? 0 : found->second;
}

inline bool is_function_word(std::string_view word, std::string_view language) {
  return (languages_of_function_word(word) & language_bit(language)) != 0;
}

}  // namespace muniment::retrieval
